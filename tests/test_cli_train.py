"""``fastpart train``: what it prints and leaves behind, its refusals, and what it says without torch."""

import errno
import importlib.util
import json
import os
import pydoc
import re
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from fastpart.train.registry import METHODS
from test_cli_process import on_a_terminal
from trainable import planted

needs_dgl = pytest.mark.skipif(not importlib.util.find_spec("dgl"), reason="needs dgl")

QUICK = ("--epochs", "3", "--hidden", "8", "--threads", "1")
ALL_METHODS = ("full", "sampled", "bytegnn", "armada", "sdt", "distgnn", "sancus", "distdgl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a graph, what belongs to its vertices, and its parts."""
    folder = tmp_path_factory.mktemp("planted")
    planted(folder, k=2)
    labels = np.load(folder / "g.bin.labels.npy")
    order = np.random.default_rng(0).permutation(len(labels))
    np.savez(folder / "s.npz", train=order[:300], val=order[300:450], test=order[450:])
    return folder


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, folder, monkeypatch, restored):
    """Run in a folder of its own that has the graph and the parts."""
    monkeypatch.chdir(tmp_path)
    for file in folder.iterdir():
        (tmp_path / file.name).symlink_to(file)


@pytest.fixture
def run(run):
    """Run `fastpart train` in this process; return exit code, stdout and stderr."""
    return partial(run, "train")


# Complete results.


@pytest.mark.torch
def test_full_prints_the_epochs_and_the_summary(run):
    before = sorted(os.listdir())
    code, out, err = run("full", "parts", *QUICK)
    assert (code, err) == (0, "")
    table, summary = out.split("\n\n")
    assert table.split("\n")[0].split()[:4] == ["epoch", "loss", "val_accuracy", "val_f1"]
    assert [line.split()[0] for line in table.split("\n")[1:]] == ["0", "1", "2"]
    assert re.search(r"^method +full$", summary, re.MULTILINE)
    assert re.search(r"^test_accuracy +[01]\.\d{4}$", summary, re.MULTILINE)
    assert sorted(os.listdir()) == before


@pytest.mark.torch
def test_rows_come_while_it_trains_in_80_columns(run, monkeypatch):
    printed, train = [], fp.train.sampled

    def followed(*args, on_epoch, **given):
        def after(row):
            on_epoch(row)
            printed.append(len(sys.stdout.getvalue().splitlines()))

        return train(*args, on_epoch=after, **given)

    monkeypatch.setattr(fp.train, "sampled", followed)
    code, out, err = run(
        "sampled", "parts", *QUICK, "--workers", "2", "--eval-every", "2", "--log", "m.jsonl"
    )
    assert (code, err) == (0, "fastpart: note: starting 2 workers\n")
    assert printed == [2, 3, 4]  # with the names
    table, summary = out.split("\n\n")
    names, *rows = (line.split() for line in table.split("\n"))
    assert names == ["epoch", "loss", "val_accuracy", "val_f1", "seconds", "remote_bytes"]
    assert [row[0] for row in rows] == ["0", "1", "2"]
    assert [row[2] == "-" for row in rows] == [True, False, False]
    assert {len(line) for line in table.split("\n")} == {len(table.split("\n")[0])}
    assert max(map(len, table.split("\n"))) <= 80
    assert summary.startswith("method ")
    logged = [json.loads(line) for line in Path("m.jsonl").read_text().splitlines()]
    assert [f"{row['loss']:.4f}" for row in logged] == [row[1] for row in rows]


def test_columns_that_do_not_fit_are_left_out(capsys):
    from fastpart.cli.training import EpochRows

    rows = EpochRows()
    scores = {f"val_{'long' * n}": 0.5 for n in range(1, 9)}
    rows({"epoch": 0, "loss": 1.0, **scores, "seconds": 0.1, "remote_bytes": 10**13})
    rows({"epoch": 1, "loss": 12345.0, **scores, "seconds": 9999.0, "remote_bytes": 10**13})
    names, first, second = capsys.readouterr().out.splitlines()
    assert names.split()[:2] == ["epoch", "loss"]
    assert names.split()[-2:] == ["seconds", "remote_bytes"]
    assert len(names) == len(first) == len(second) <= 80


@pytest.mark.torch
def test_a_training_without_further_epochs_prints_those_it_has(run):
    _, first, _ = run("full", "parts", *QUICK, "-o", "run")
    code, again, _ = run("full", "parts", *QUICK, "-o", "run", "--resume")
    assert code == 0
    assert again.split("\n\n")[1] == first.split("\n\n")[1]
    assert [line.split()[0] for line in again.split("\n\n")[0].split("\n")] == ["epoch", "0", "1", "2"]


@pytest.mark.torch
def test_json_has_summary_and_history(run):
    code, out, err = run("full", "parts", *QUICK, "--json")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 1
    content = json.loads(out)
    expected = fp.train.full("parts", epochs=3, hidden=8, threads=1)
    assert content["summary"]["test_accuracy"] == expected.summary["test_accuracy"]
    assert [row["epoch"] for row in content["history"]] == [0, 1, 2]
    np.testing.assert_allclose([row["loss"] for row in content["history"]], expected.history["loss"])


@pytest.mark.torch
def test_json_of_what_was_not_measured_is_null(run, folder, tmp_path):
    np.savez("only.npz", train=np.arange(600))
    partition = fp.VertexPartition(np.arange(600) % 2, k=2)
    given = {"features": "g.bin.features.npy", "labels": "g.bin.labels.npy", "splits": "only.npz"}
    partition.save("unvalidated", graph="g.bin", **given)
    code, out, _ = run("full", "unvalidated", *QUICK, "--json")
    assert code == 0
    content = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert content["history"][0]["val_accuracy"] is None
    assert content["summary"]["test_accuracy"] is None


@pytest.mark.torch
def test_resume_goes_on_where_the_checkpoint_ends(run):
    code, out, _ = run("full", "parts", *QUICK, "-o", "run")
    assert code == 0
    assert out.endswith("\nsaved to run\n")
    assert {"best.pt", "checkpoint.pt", "history.parquet", "run.toml"} <= set(os.listdir("run"))
    assert tomllib.loads(Path("run/run.toml").read_text())["train"]["full"]["source"] == "parts"
    assert pl.read_parquet("run/history.parquet")["epoch"].to_list() == [0, 1, 2]
    code, out, _ = run("full", "parts", *QUICK, "-o", "run", "--resume", "-q")
    assert code == 0
    assert "saved" not in out
    assert pl.read_parquet("run/history.parquet")["epoch"].to_list() == [0, 1, 2]
    said = refused(run, 2, "full", "parts", *QUICK, "--lr", "0.5", "-o", "run", "--resume")
    assert "run was trained with lr = 0.01, not 0.5" in said


@pytest.mark.torch
@pytest.mark.timeout(120)
def test_sdt_and_its_own_options(run):
    own = ("--workers", "1", "--average-every", "2", "--parts", "auto", "--memory-per-worker", "1G")
    code, out, err = run("sdt", "parts", *QUICK, *own, "-o", "run", "--json")
    assert (code, err) == (0, "fastpart: note: starting 1 worker\n")
    content = json.loads(out)
    summary = content["summary"]
    assert [row["epoch"] for row in content["history"]] == [1, 2]
    assert (summary["parts"], summary["workers"], summary["sizing"]["parts_by_rule"]) == (1, 1, 1)
    assert {"parts-1", "best.pt"} <= set(os.listdir("run"))
    code, out, err = run("sdt", "parts", *QUICK, *own, "-o", "run", "--resume", "-q")
    assert (code, err) == (0, "")
    assert re.search(r"^sizing +graph_bytes [\d,]+, memory_per_worker 1,073,741,824, ", out, re.MULTILINE)


COMPARE = ("compare", "g.bin", "-k", "2", "--features", "g.bin.features.npy", "--labels", "g.bin.labels.npy")


@pytest.mark.torch
@pytest.mark.timeout(120)
def test_compare_prints_one_table_and_saves_it(run):
    given = ("--splits", "s.npz", "--methods", "full", "--seeds", "1", *QUICK)
    code, out, err = run(*COMPARE, *given, "-o", "table.parquet")
    assert (code, err) == (0, "")
    table = pl.read_parquet("table.parquet")
    assert out == f"{fp.report.text.table(table)}\n\nsaved to table.parquet\n"
    assert table["method"].to_list() == ["full"]
    code, out, _ = run(*COMPARE, *given, "--json")
    assert json.loads(out)[0]["test_accuracy"] == table["test_accuracy"][0]


@pytest.mark.torch
@pytest.mark.timeout(120)
def test_compare_draws_all_methods_side_by_side(run):
    given = (
        "--splits",
        "s.npz",
        "--methods",
        "sdt,full",
        "--partitioners",
        "spring,random",
        "--seeds",
        "1",
        *QUICK,
    )
    code, _, err = run(*COMPARE, *given, "-o", "report.html")
    assert (code, err) == (0, "")
    page = Path("report.html").read_text()
    assert "<h1>Training over partitions of g.bin</h1>" in page
    assert page.count("<tr>") == 4
    for words in ("seconds per epoch", "memory of the largest worker, MiB"):
        (plot,) = re.findall(
            rf"<figcaption>{words} \(less is better\)</figcaption>(<svg.*?</svg>)", page, re.S
        )
        assert [
            name for name in ("sdt, spring", "sdt, random", "full") if f">{name}</text>" not in plot
        ] == []


@pytest.mark.torch
def test_the_progress_bar_counts_epochs():
    code, out, shown = on_a_terminal("train", "full", "parts", *QUICK)
    assert code == 0
    assert b"\x1b" not in out
    assert re.search(rb"\repoch: +\d+%\|.*\| \d/3 \[", shown)
    assert re.search(rb"\r +\r$", shown)


# Refusals.


def refused(run, code, *arguments):
    """Run a command that is refused; return the one line it says."""
    got, out, err = run(*arguments)
    assert (got, out) == (code, "")
    assert err.count("\n") == 1
    assert err.startswith("fastpart: error: ")
    return err.removeprefix("fastpart: error: ").strip()


@pytest.mark.torch
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["full", "--workers", "2"],
            r"unknown option '--workers' \(see `fastpart train full --help`\)",
        ),
        (
            ["sdt", "--trainers-per-part", "2"],
            "unknown option '--trainers-per-part'",
        ),
        (["distdgl", "--average", "weights"], "unknown option '--average'"),
        (
            ["distgnn", "--workers", "2"],
            "unknown option '--workers'",
        ),
        (["distgnn", "--batch-size", "10"], "unknown option '--batch-size'"),
        (["distgnn", "--delay", "cd-5"], "--delay: 'cd-5' is not a number"),
        (["distgnn"], "SOURCE: parts is a vertex partition. This method trains over parts of the edges"),
        (["full", "surplus"], "unknown argument 'surplus'"),
        (["full", "--epochs", "many"], "--epochs: 'many' is not a number"),
        (["full", "--epochs", "0"], "epochs: 0 is not between 1 and"),
        (["full", "--dropout", "1"], "dropout: 1.0 is not a share"),
        (["full", "--lr", "-1"], "lr: -1"),
        (
            ["full", "--model", "perceptron"],
            "model: unknown value 'perceptron'. Valid values are 'graphsage'",
        ),
        (["full", "--model", "absent.py:Model"], "model: absent.py:Model: "),
        (["full", "--layers", "3", "--fanouts", "5,5"], "fanouts: 2 numbers for 3 layers"),
        (["full", "--resume"], "--resume: needs --out, "),
        (["sdt", "--parts", "auto"], "Pass --memory-per-worker"),
        (["sdt", "--average", "median"], "--average: unknown value 'median'"),
        (["sdt", "--workers", "0"], "workers: 0"),
    ],
)
def test_wrong_command_lines_exit_with_2(run, words, text):
    before = sorted(os.listdir())
    assert re.search(text, refused(run, 2, words[0], "parts", *words[1:]))
    assert sorted(os.listdir()) == before


@pytest.mark.torch
@pytest.mark.parametrize("method", ["full", "sampled", "armada"])
def test_a_training_that_the_memory_limit_does_not_hold_is_refused(run, method):
    said = refused(run, 1, method, "parts", "--memory-limit", "1K")
    assert re.match(r"training needs \d+\.\d [kM]B of memory, but the limit is 1\.0 kB: ", said)
    assert ". Raise --memory-limit, or use " in said


@pytest.mark.torch
@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--methods", "sdt,gossip"], 2, "methods: unknown value 'gossip'"),
        (
            ["--partitioners", "dbh"],
            2,
            "partitioners: dbh makes parts of edges, but no method",
        ),
        (
            ["--methods", "distgnn", "--partitioners", "spring"],
            2,
            "spring makes parts of vertices, but no method",
        ),
        (["--partitioners", "metis"], 2, "partitioners: unknown value 'metis'"),
        (["--seeds", "0"], 2, "seeds: 0"),
        (
            ["--workers", "2"],
            2,
            "unknown option '--workers'",
        ),
        (["--fanouts", "5,some"], 2, "fanouts: 'some' is not a number"),
        (["-o", "table.xls"], 2, r"unknown suffix '\.xls'"),
        (
            ["-o", "absent/table.parquet"],
            1,
            "absent: the folder of the output does not exist. Create it first",
        ),
        (["--features", "absent.npy"], 1, "absent.npy: No such file or directory"),
    ],
)
def test_compare_refuses(run, words, code, text):
    assert re.search(text, refused(run, code, *COMPARE, "--splits", "s.npz", *QUICK, *words))


@pytest.mark.torch
@pytest.mark.parametrize(
    "method", ["full", "sampled", pytest.param("distdgl", marks=[pytest.mark.dgl, needs_dgl]), "sdt"]
)
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("absent", "absent: No such file or directory"),
        ("g.bin", "g.bin"),
        ("bare", r"SOURCE: bare holds no graph, no features, no labels, no splits. "),
    ],
)
def test_what_cannot_be_trained_on_is_refused(run, method, source, text):
    fp.VertexPartition(np.arange(600) % 2, k=2).save("bare")
    code, out, err = run(method, source, *QUICK)
    assert code in (1, 2)
    assert (out, err.count("\n")) == ("", 1)
    assert re.search(text, err)


# Without torch.


@pytest.fixture
def without(monkeypatch):
    """Return a function that lets a library be missing."""

    def without(name):
        monkeypatch.setitem(sys.modules, name, None)
        for function in fp.train.__all__:
            monkeypatch.delitem(vars(fp.train), function, raising=False)

    return without


REMEDY = "training needs {}, which is not installed: pip install 'fastpart[{}]'"


@pytest.mark.parametrize("method", ALL_METHODS)
def test_missing_torch_is_one_line_with_the_remedy(run, without, method):
    without("torch")
    assert refused(run, 1, method, "parts") == REMEDY.format("torch", "train")


@pytest.mark.torch
def test_missing_dgl_is_one_line_with_the_remedy(run, without):
    without("dgl")
    assert refused(run, 1, "distdgl", "parts") == REMEDY.format("dgl", "dgl")


@pytest.mark.torch
@pytest.mark.parametrize("methods", [["distdgl", "full"], ["sdt", "distdgl"]])
def test_compare_says_what_is_missing(run, without, methods):
    without("dgl")
    words = ("--splits", "s.npz", "--methods", ",".join(methods), *QUICK)
    assert refused(run, 1, *COMPARE, *words) == REMEDY.format("dgl", "dgl")
    without("torch")
    assert refused(run, 1, *COMPARE, *words) == REMEDY.format("torch", "train")


@pytest.mark.torch
@pytest.mark.timeout(120)
def test_methods_of_our_own_are_compared_without_dgl(run, without):
    without("dgl")
    given = ("--splits", "s.npz", "--methods", "distgnn", "--partitioners", "dbh", "--seeds", "1", *QUICK)
    code, out, err = run(*COMPARE, *given, "--json")
    assert (code, err) == (0, "")
    assert [row["method"] for row in json.loads(out)] == ["distgnn"]


def test_functions_say_what_is_missing(without):
    without("torch")
    methods = set(METHODS)
    for name in {*fp.train.__all__} - methods - {"register"}:
        with pytest.raises(ModuleNotFoundError, match=re.escape(REMEDY.format("torch", "train"))):
            getattr(fp.train, name)
    for name in methods:  # described without torch
        with pytest.raises(ModuleNotFoundError, match=re.escape(REMEDY.format("torch", "train"))):
            getattr(fp.train, name)("parts")
    with pytest.raises(AttributeError, match="no attribute 'quarter'"):
        fp.train.quarter  # noqa: B018


# Who only partitions pays neither the seconds nor the memory of torch.
def test_importing_fastpart_does_not_import_torch():
    code = (
        "import sys, fastpart, fastpart.cli\n"
        "fastpart.train, dir(fastpart.train)\n"
        "heavy = {'torch', 'dgl', 'scipy', 'pandas', 'jinja2', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# A module of the name of a function would take its place as soon as anything imports it.
@pytest.mark.torch
@pytest.mark.parametrize("first", ["compare", "distdgl"])
def test_functions_are_functions_in_any_order(first):
    code = (
        f"import fastpart as fp\nfp.train.{first}\n"
        "assert all(callable(getattr(fp.train, name)) for name in fp.train.__all__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.torch
def test_help_of_the_package_has_its_functions():
    text = pydoc.plain(pydoc.render_doc(fp.train))
    for name in ("compare", "distdgl", "full", "sdt"):
        assert f"\n    {name}(" in text
    assert "class TrainedModel" in text


@pytest.mark.torch
def test_predictions_that_fail_leave_the_training(run, monkeypatch):
    def fails(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "classes.npy")

    with monkeypatch.context() as patch:
        patch.setattr("fastpart.train.runs.trained.predictions", fails)
        code, _, err = run("full", "parts", *QUICK, "--predictions", "classes.npy")
    assert code == 1
    assert "No space left" in err
    assert len(fp.train.open("classes.npy.partial").history) == 3
    resumed = ("-o", "classes.npy.partial", "--resume", "--predictions", "classes.npy")
    assert run("full", "parts", *QUICK, *resumed)[0] == 0
    assert np.load("classes.npy").shape == (600,)
    assert run("full", "parts", *QUICK, "--predictions", "others.npy")[0] == 0
    assert not os.path.exists("others.npy.partial")


@pytest.mark.torch
def test_more_epochs_are_added_and_a_training_is_only_replaced_on_request(run):
    assert run("full", "parts", *QUICK, "-o", "run")[0] == 0
    assert refused(run, 2, "full", "parts", "--resume").startswith("--resume: needs --out")
    code, _, err = run("full", "parts", *QUICK, "-o", "run")
    assert code == 2
    assert "holds a training" in err
    assert "resume" in err
    assert "overwrite" in err
    longer = tuple("5" if word == "3" else word for word in QUICK)
    assert run("full", "parts", *longer, "-o", "run", "--resume")[0] == 0
    assert len(fp.train.open("run").history) == 5
    assert run("full", "parts", *QUICK, "-o", "run", "--overwrite")[0] == 0
    assert len(fp.train.open("run").history) == 3


@pytest.mark.torch
def test_a_comparison_is_shown_if_its_file_cannot_be_written(run, monkeypatch):
    def fails(*_):
        raise RuntimeError("no fonts")

    monkeypatch.setattr("fastpart.report.pages.write_training", fails)
    given = ("--splits", "s.npz", "--methods", "full", "--seeds", "1", *QUICK)
    code, out, err = run(*COMPARE, *given, "-o", "report.html")
    assert code == 1
    assert "no fonts" in err
    assert "test_accuracy" in out
