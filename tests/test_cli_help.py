"""``--help`` says what the functions take; neither it nor a typo waits for Polars or torch."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.cli.call import FUNCTIONS
from fastpart.cli.verbs import _VERBS, GROUPS
from fastpart.core.calls import full_signature
from fastpart.machines.tasks import work
from fastpart.partitions.partitioners import PARTITIONERS
from fastpart.train.predictions import predict

OBJECTS = {
    "graph",
    "loss",
    "optimizer",
    "scheduler",
    "metrics",
    "source",
    "partition",
    "degrees",
    "cache_ids",
    "progress",
    "on_epoch",
    "callbacks",
    "on_outcome",
    "self",
}
"""What only Python can give, and what stands without a name: FILE, SOURCE, PARTITION."""

IN_MEMORY = {"features", "labels", "splits", "edge_splits", "edge_labels", "edge_label_splits"}
"""What a training takes with a partition in memory, which no command line can give."""

RUNNING = {"threads", "memory_limit", "tmp_dir"}
ADDED = {"--config", "--json", "--quiet", "--debug"}

GRAPH = fp.open_graph
MEASURED = (fp.open_partition, GRAPH)

COMMANDS = {
    **{f"generate {name}": (getattr(fp.generate, name),) for name in fp.generate.__all__},
    "convert": (fp.convert,),
    "ingest": (fp.ingest,),
    "split-edges": (fp.split_edges, GRAPH),
    "info": (fp.info, GRAPH),
    **{
        f"partition --algorithm {name}": (function, GRAPH, fp.evaluate, fp.VertexPartition.save)
        for name, function in PARTITIONERS.items()
    },
    "refine": (fp.refine, GRAPH, fp.evaluate, fp.VertexPartition.save),
    "update": (fp.update, GRAPH, fp.evaluate, fp.VertexPartition.save),
    "edges-of": (fp.edges_of, GRAPH, fp.evaluate, fp.EdgePartition.save),
    "evaluate": (fp.evaluate, *MEASURED),
    "cluster": (fp.cluster, GRAPH),
    "order": (fp.order, GRAPH),
    "compare": (fp.compare, GRAPH),
    "report": (fp.evaluate, *MEASURED),
    "plan": (fp.VertexPartition.plan,),
    "restore": (fp.store.restore,),
    "doctor": (fp.doctor,),
    "upgrade": (fp.store.upgrade,),
    "verify": (fp.store.verify,),
    "work": (work,),
    "predict": (predict,),
    **{f"export {name}": (getattr(fp.export, name),) for name in fp.export.__all__},
}
"""The functions behind each command, its own first."""

METHODS = ("full", "sampled", "bytegnn", "armada", "distdgl", "sdt", "distgnn", "sancus")


TEXTS = {}
"""The help of commands that a test has asked for before."""


@pytest.fixture
def text_of(capsys, monkeypatch):
    """Return the help of a command, in lines that are not wrapped."""
    monkeypatch.setenv("COLUMNS", "1000")

    def text_of(*words):
        if words not in TEXTS:
            assert main([*words, "--help"]) == 0
            TEXTS[words] = capsys.readouterr().out
        return TEXTS[words]

    return text_of


def listed(text):
    """Return the defaults, as text, of all options in the help; None where it says none."""
    options = {}
    text = re.sub(r"^(  -.*)\n {28}", r"\1  ", text, flags=re.MULTILINE)
    for line in re.findall(r"^  (-.*)$", text, re.MULTILINE):
        names, described, doc = line.partition("  ")
        assert described, f"{line} says nothing"
        assert doc.strip()
        default = re.search(r" \[default: (.*)\]$", line)
        options[re.split("[ ,]", names)[0]] = default and default[1]
    return options


def shown(default):
    """Return a default as the command line takes it."""
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


def expected(functions, arguments):
    """Return what the help should list, by the signatures."""
    options = dict.fromkeys(ADDED)
    for place, function in enumerate(functions):
        for name, parameter in full_signature(function).parameters.items():
            if (
                name in OBJECTS | arguments
                or (place and name in RUNNING)
                or parameter.kind is parameter.VAR_KEYWORD
            ):
                continue
            given = parameter.default not in (None, parameter.empty)
            options.setdefault(
                "-k" if name == "k" else f"--{name.replace('_', '-')}",
                shown(parameter.default) if given else None,
            )
    return options


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_what_the_functions_take(text_of, command):
    arguments = {"out"} if command.split()[0] in ("generate", "convert", "split-edges", "export") else set()
    arguments |= {"shared"} if command == "work" else set()
    arguments |= {"run", "vertices", "edges"} if command == "predict" else set()
    options = expected(COMMANDS[command], arguments)
    if command.startswith("partition ") or command in ("edges-of", "refine", "report", "update"):
        options = {
            name: default for name, default in options.items() if name not in ("--cluster", "--shared")
        }
    if command in ("cluster", "compare", "edges-of", "evaluate", "refine", "report", "update"):
        options["--out"] = None
    if command in ("edges-of", "refine", "update"):
        options |= {"--resume": None, "--export": None}
    if command == "ingest":
        options["--guess"] = options.pop("--schema")
    if command == "restore":
        options["--graph"] = options.pop("--result")
    if command == "order":
        options["--partition"] = None
    if command == "plan":
        options["--out"] = options.pop("--pack")
    if command == "info":
        training = (
            "fanouts",
            "batch_size",
            "workers",
            "sampling",
            "seed",
            "model",
            "hidden",
            "layers",
            "target",
        )
        of_training = expected([fp.train.sampled], set())
        flags = [f"--{name.replace('_', '-')}" for name in training]
        options |= {"--train": None, **{flag: of_training[flag] for flag in flags}}
    if command.startswith("partition"):
        options |= dict.fromkeys(("--algorithm", "--dry-run", "--out", "--resume", "--export"))
    assert listed(text_of(*command.split())) == options


@pytest.mark.torch
@pytest.mark.parametrize("method", METHODS)
def test_help_lists_what_the_methods_of_training_take(text_of, method):
    assert listed(text_of("train", method)) == expected((getattr(fp.train, method),), IN_MEMORY) | {
        "--log": None,
        "--predictions": None,
        "--restore": None,
    }


@pytest.mark.torch
def test_help_lists_what_training_of_links_takes(text_of):
    assert listed(text_of("train", "links")) == expected((fp.train.links,), IN_MEMORY) | {"--log": None}


@pytest.mark.torch
def test_help_lists_what_comparing_methods_takes(text_of):
    functions = (fp.train.compare, GRAPH, fp.train.full)
    options = expected(functions, {"seed", "target", "resume", "overwrite", "baselines"})
    given = listed(text_of("train", "compare"))
    assert given.pop("--methods") == "sampled,sdt,full"
    assert given == {name: value for name, value in options.items() if name != "--methods"}


def test_help_of_partition_lists_all_algorithms(text_of):
    text = text_of("partition")
    for name, function in PARTITIONERS.items():
        assert re.search(
            rf"^  {name} +{re.escape(function.__doc__.split('.')[0].split()[0])} ", text, re.MULTILINE
        )
    functions = (fp.partition, *COMMANDS["partition --algorithm hash"][1:])
    assert listed(text) == expected(functions, set()) | {
        "--algorithm": None,
        "--dry-run": None,
        "--out": None,
        "--resume": None,
        "--export": None,
    }


@pytest.mark.parametrize("words", [[], *([name] for name in ("generate", "export", "train"))])
def test_help_lists_the_commands(text_of, words):
    text = text_of(*words)
    names = {
        "": tuple(" ".join(GROUPS.values()).split()),
        "generate": ("rmat", "ba", "planted", "grid", "typed"),
        "export": fp.export.__all__,
        "train": (*METHODS, "links", "edges", "embeddings", "compare"),
    }
    assert re.findall(r"^  (\w[\w-]*) +[A-Z]", text, re.MULTILINE) == list(names["".join(words)])


def test_the_groups_of_the_help_have_every_command_once(text_of):
    assert sorted(" ".join(GROUPS.values()).split()) == sorted(_VERBS)
    titles = re.findall(r"^(\w.*):$", text_of(), re.MULTILINE)
    assert titles == [*GROUPS, "Options", "examples"]
    assert next(iter(GROUPS)) == "The first day"


@pytest.mark.parametrize("words", [[], ["train"], ["export"], ["generate"]])
def test_a_line_without_a_command_prints_the_help(capsys, text_of, words):
    help = text_of(*words)
    assert main(words) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (help, "")


@pytest.mark.parametrize(
    "command",
    [*COMMANDS, *(f"train {method}" for method in (*METHODS, "links", "edges", "embeddings", "compare"))],
)
def test_help_has_examples_of_the_command(text_of, command):
    text = text_of(*command.split())
    examples = re.findall(r"^  (fastpart .*)$", text.partition("\nexamples:\n")[2], re.MULTILINE)
    assert examples
    assert all(example.startswith(f"fastpart {command.partition(' --')[0]} ") for example in examples)
    assert text.isascii() or "Barab" in text


TYPOS = {
    "train full parts --model graphsge": "--model: unknown value 'graphsge'. .*. Did you mean 'graphsage'",
    "train compare g.bin -k 2 --features x.npy --labels y.npy --splits s.npz --partitioners sprng": (
        "--partitioners: unknown value 'sprng'. .*. Did you mean 'spring'"
    ),
    "compare g.bin -k 2 --algorithms sprng": "--algorithms: unknown name 'sprng'. .*. Did you mean 'spring'",
    "partitoin g.bin": "unknown command 'partitoin'. .*. Did you mean 'partition'",
    "train sdd parts": "unknown command 'sdd'. .*. Did you mean 'sdt'",
    "generate rmta g.bin": "unknown command 'rmta'. .*. Did you mean 'rmat'",
    "export dlg parts out": "unknown command 'dlg'. .*. Did you mean 'dgl'",
    "partition g.bin -k 2 --algorithm sgma": "--algorithm: unknown value 'sgma'. .*. Did you mean 'sigma'",
    "partition g.bin -k 2 --algorithm=spring --pases 2": "unknown option '--pases'. Did you mean '--passes'",
    "train sdt parts --epoch 2": "unknown option '--epoch'. Did you mean '--epochs'",
    "evaluate g.bin parts --lables y.npy": "unknown option '--lables'. Did you mean '--labels'",
    "evaluate g.bin parts --of edge": "--of: unknown value 'edge'. .*. Did you mean 'edges'",
    "train sdt parts --average weight": "--average: unknown value 'weight'. .*. Did you mean 'weights'",
    "train compare g.bin -k 2 --features x --labels y --splits s --methods sdt,distgn":
        "--methods: unknown value 'distgn'. .*. Did you mean 'distgnn'",
}  # fmt: skip

PROCESS = """
import sys
HEAVY = {"torch", "dgl", "polars", "yaml", "asyncio"}
from fastpart.cli import main
for words in sys.argv[1:]:
    code = main(words.split())
    print(code, *HEAVY & set(sys.modules))
"""


def lines_of(commands):
    """Run commands in one process. Return the lines that it prints, and those of its errors."""
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, *commands], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_typos_are_told_at_once():
    codes, errors = lines_of(TYPOS)
    assert codes == ["2"] * len(TYPOS)
    for text, error in zip(TYPOS.values(), errors, strict=True):
        assert re.fullmatch(rf"fastpart: error: {text}\?( \(see `fastpart .*--help`\))?", error)


def test_help_imports_neither_polars_nor_torch():
    commands = ["--help", "train sdt --help", "partition --help", "compare --help"]
    lines, errors = lines_of(commands)
    assert [line for line in lines if line.startswith("0")] == ["0"] * len(commands)
    assert errors == []


def test_help_imports_little_of_fastpart():
    code = PROCESS.replace("HEAVY = {", 'HEAVY = {"numpy", "msgspec", "fastpart.graphs", ')
    algorithm = "partition --algorithm spring --help"
    for words in ("--help", algorithm, "train sdt --help"):
        done = subprocess.run(
            [sys.executable, "-c", code, words], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stdout.splitlines()[-1] == "0"


def test_options_are_those_of_the_functions():
    """`make stubs` writes them anew."""
    file = Path(__file__).parents[1] / "tools" / "command_line.py"
    assert runpy.run_path(str(file))["text"]() == FUNCTIONS.read_text(encoding="utf-8")


def test_completion_is_installed_for_the_shell(tmp_path):
    environment = os.environ | {"HOME": str(tmp_path), "SHELL": "/bin/bash", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "fastpart", "--install-completion"],
        env=environment, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    (script,) = (file for file in tmp_path.rglob("*") if file.is_file() and "fastpart" in file.name)
    text = script.read_text()
    assert all(
        word in text for word in ("partition", "--memory-limit", "sdt", "--epochs", "multilevel", "--passes")
    )
