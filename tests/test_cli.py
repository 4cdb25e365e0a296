"""The command line: exit codes, one line per refusal, and output that other programs can read."""

import json
import os
import re

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from strategies import raw

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [5, 5]], dtype=np.uint32)
"""Two triangles joined by one edge, and a loop."""

VERBS = ["generate", "convert", "info", "partition", "evaluate"]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch, restored):
    """Run in a folder that holds a graph with its sidecar."""
    monkeypatch.chdir(tmp_path)
    raw(tmp_path / "g.bin", EDGES)
    checksum = fp.open_graph(EDGES).identify()[1]
    sidecar = {
        "fastpart": 1,
        "dtype": "u32",
        "n": 6,
        "m": 8,
        "directedness": "undirected",
        "checksum": checksum,
    }
    (tmp_path / "g.bin.json").write_text(json.dumps(sidecar))


SPRING = ("partition", "g.bin", "-k", "2", "--algorithm", "spring")


# Complete results.


def test_partition_prints_the_measures_and_writes_nothing(run, tmp_path):
    code, out, err = run(*SPRING)
    assert (code, err) == (0, "")
    evaluation = str(fp.evaluate("g.bin", fp.spring("g.bin", 2)))
    assert out.startswith(f"{evaluation}\n\nspring: ")
    assert re.search(r"\nspring: \d+\.\d\d s, \d+\.\d M edges/s\n$", out)
    assert sorted(os.listdir()) == ["g.bin", "g.bin.json"]


@pytest.mark.parametrize("out", ["part.npy", "part.txt", "part.parquet", "part", "part/"])
def test_partition_saves_in_each_form(run, out):
    code, printed, _ = run(*SPRING, "-o", out)
    assert code == 0
    assert printed.endswith(f"saved to {out.rstrip('/')}\n")
    loaded = fp.open_partition(out, graph="g.bin", k=2)
    assert loaded.assignment.tolist() == fp.spring("g.bin", 2).assignment.tolist()
    beside = [f"{out}.run.toml"] if "." in out else []
    assert sorted(os.listdir()) == ["g.bin", "g.bin.json", out.rstrip("/"), *beside]
    if "." not in out:
        parts = ["part-00000", "part-00001"]
        assert sorted(os.listdir(out)) == [
            "assignment.npy",
            "manifest.json",
            "metrics.parquet",
            *parts,
            "run.toml",
        ]
        assert loaded.parameters["balance"] == 1.05


# Labels and splits are of vertices: the parts of an edge partition hold them, and no measure is asked of them.
def test_the_directory_of_an_edge_partition_holds_labels_and_splits(run):
    np.save("y.npy", np.array([0, 0, 0, 1, 1, 1]))
    np.savez("s.npz", train=[0, 3], val=[1], test=[2])
    given = ("--algorithm", "sigma", "--of", "edges", "--labels", "y.npy", "--splits", "s.npz")
    assert run("partition", "g.bin", "-k", 2, *given, "-o", "parts")[::2] == (0, "")
    parts = fp.open_partition("parts").parts
    assert {label for part in parts for label in part.labels.tolist()} == {0, 1}
    assert refused(run, 2, "partition", "g.bin", "-k", 2, *given).startswith(
        "--labels, --splits: an edge partition has no measures of them"
    )


def test_json_of_partition_and_evaluate(run):
    np.save("y.npy", np.array([0, 0, 0, 1, 1, 1]))
    np.savez("s.npz", train=[0, 3], val=[1], test=[2])
    measures = ("--labels", "y.npy", "--splits", "s.npz")
    code, out, err = run(*SPRING, "-o", "part", "--json", *measures)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 1
    content = json.loads(out)
    partition = fp.spring("g.bin", 2)
    expected = fp.evaluate("g.bin", partition, "y.npy", "s.npz")
    assert content == {
        "summary": expected.summary.row(0, named=True),
        "parts": expected.parts.rows(named=True),
    }
    assert pl.read_parquet("part/metrics.parquet").equals(expected.parts)
    code, again, err = run("evaluate", "g.bin", "part", "--json", *measures)
    assert (code, err) == (0, "")
    assert json.loads(again) == content


def test_evaluate_reads_what_other_tools_wrote(run):
    np.save("part.npy", np.array([0, 0, 0, 1, 1, 1]))
    code, out, _ = run("evaluate", "g.bin", "part.npy", "-k", 3, "--json")
    assert code == 0
    assert json.loads(out)["summary"]["k"] == 3
    np.save("edge.npy", np.zeros(8, np.int64))
    code, out, _ = run("evaluate", "g.bin", "edge.npy", "--of", "edges", "--json")
    assert json.loads(out)["summary"]["rf"] == 1.0
    code, out, _ = run("evaluate", "g.bin", "part.npy")
    assert code == 0
    assert out.startswith("part")
    assert "0.1429" in out


def test_info(run):
    code, out, err = run("info", "g.bin", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == fp.info("g.bin")
    code, out, _ = run("info", "g.bin", "-k", 8)
    facts = fp.info("g.bin", 8)
    assert (code, out) == (0, f"{facts}\n")
    assert json.loads(run("info", "g.bin", "-k", 8, "--json")[1]) == facts


def test_generate_and_convert(run):
    code, out, err = run("generate", "rmat", "r.bin", "--n", "1e3", "--m", "5_000", "--seed", 3, "--json")
    assert (code, err) == (0, "")
    content = json.loads(out)
    checksum = fp.open_graph("r.bin").identify()[1]
    expected = {
        "out": "r.bin",
        "dtype": "u32",
        "n": 1000,
        "m": 5000,
        "directedness": "undirected",
        "checksum": checksum,
    }
    assert content == expected
    code, out, _ = run(
        "generate", "planted", "p.bin", "--n", 100, "--m", 2000, "--classes", 4, "--features", 2
    )
    assert (code, out) == (0, "p.bin: n = 100, m = 2,000, undirected, sidecar p.bin.json\n")
    assert np.load("p.bin.features.npy").shape == (100, 2)
    np.savetxt("g.txt", EDGES, fmt="%d")
    code, out, _ = run(
        "convert", "g.txt", "c.bin", "--directedness", "directed", "--num-vertices", 9, "--json"
    )
    assert code == 0
    assert json.loads(out)["loops"] == 1
    assert fp.open_graph("c.bin").identify() == fp.open_graph(EDGES).identify()
    assert (fp.open_graph("c.bin").directedness, fp.open_graph("c.bin").num_vertices) == ("directed", 9)
    code, out, _ = run("convert", "g.txt", "c.bin", "--relabel")
    assert (code, out) == (0, "c.bin: n = 6, m = 8, undirected, sidecar c.bin.json\n")


def test_ways_to_read_reach_the_file(run):
    EDGES.T.astype("<u8").tofile("raw.bin")
    EDGES.astype("<u8").tofile("wide.bin")
    given = (
        "--dtype",
        "u64",
        "--num-vertices",
        9,
        "--directedness",
        "symmetric",
        "--io",
        "read",
        "--threads",
        1,
    )
    code, out, _ = run("info", "wide.bin", "--json", *given)
    facts = json.loads(out)
    assert (code, facts["n"], facts["m"], facts["directedness"]) == (0, 9, 8, "symmetric")
    np.save("two.npy", np.array([[0, 1], [0, 2]]))
    code, out, _ = run("info", "two.npy", "--json", "--layout", "edge_index")
    assert json.loads(out)["loops"] == 1
    code, _, err = run("info", "two.npy", "--max-vertices", 1)
    assert code == 1
    assert "exceeds --max-vertices 1. Raise it" in err


# Parameters of the algorithm.


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--passes", "2"], {"passes": 2}),
        (["--passes=3"], {"passes": 3}),
        (["--no-strict"], {"strict": False}),
        (["--strict=false"], {"strict": False}),
        (["--strict=True"], {"strict": True}),
        (["--batch", "1"], {"batch": 1}),
        (["--batch", "none"], {"batch": None}),
        (["--balance", "1.5", "--seed", "18446744073709551615"], {"balance": 1.5, "seed": 2**64 - 1}),
    ],
)
def test_parameters_reach_the_algorithm(run, words, expected):
    code, _, err = run(*SPRING, *words, "-o", "part")
    assert (code, err) == (0, "")
    parameters = fp.open_partition("part").parameters
    assert {name: parameters[name] for name in expected} == expected


# Refusals. 20, 22 to 26


def refused(run, code, *arguments):
    """Run a command that is refused; return the one line it says."""
    got, out, err = run(*arguments)
    assert (got, out) == (code, "")
    lines = [line for line in err.splitlines() if not line.startswith("fastpart: note: ")]
    assert len(lines) == 1
    assert lines[0].startswith("fastpart: error: ")
    assert "Traceback" not in err
    return lines[0].removeprefix("fastpart: error: ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["--k-parts", "3"],
            r"unknown option '--k-parts' \(see `fastpart partition --help`\)$",
        ),
        (["--pases", "2"], "unknown option '--pases'. Did you mean '--passes'\\?"),
        (["surplus"], "unknown argument 'surplus'"),
        (["--degrees", "x"], "unknown option '--degrees'"),
        (["--memory_limit", "4G"], "unknown option '--memory_limit'. Did you mean '--memory-limit'"),
        (["--algorithm", "metis"], "--algorithm: unknown value 'metis'. Valid values are 'spring'"),
        (["--algorithm=sgma"], "--algorithm: unknown value 'sgma'. .*. Did you mean 'sigma'"),
        (["--passes", "two"], "--passes: 'two' is not a number"),
        (["--passes", "2.5"], r"--passes: '2\.5' is not a number"),
        (["--passes"], "--passes needs a value"),
        (["--passes", "0"], "passes: 0 is not between 1 and"),
        (["--strict=maybe"], "--strict: unknown value 'maybe'. Valid values are true, false"),
        (["--strict", "false"], "unknown argument 'false'"),
        (["-k", "0"], "k: 0 is not between 1 and 1048576"),
        (["-k", "two"], r"-k: 'two' is not a number \(see `fastpart partition --help`\)"),
        (["--balance", "0.5"], r"balance: 0\.5 is not a ratio of at least 1"),
        (["--balance", "nan"], "balance: nan"),
        (["--balance", "much"], "--balance: 'much' is not a number"),
        (["--seed", "-1"], "seed: -1 is not between 0 and"),
        (["--seed", "0.5"], r"--seed: '0\.5' is not a number"),
        (["--seed", "inf"], "--seed: 'inf' is not a number"),
        (["--threads", "-1"], "threads: -1"),
        (["--threads", "1000000"], "threads: 1000000"),
        (
            ["--memory-limit", "4X"],
            "--memory-limit: '4X' is not a size. Write bytes, or a size such as 4G or 512M",
        ),
        (["--num-vertices", "5"], r"--num-vertices: 5, but g\.bin\.json says 6"),
        (["--directedness", "mixed"], "--directedness: unknown value 'mixed'. Valid values are undirected, "),
        (["--dtype", "f4"], "dtype: unknown value"),
        (["--io", "map"], "--io: unknown value 'map'. Valid values are mmap, read. Did you mean 'mmap'"),
        (
            ["-o", "part.csv"],
            r"out: unknown suffix '\.csv' of .*\. Use \.npy, \.txt, \.parquet, or no suffix",
        ),
        (["-o", "g.bin/"], "--out: g.bin is the input. Choose another name"),
        (["--splits", "s.npz", "--split", "7"], "split: 7, but train_masks has shape"),
        (["--labels", "short.npy"], "labels: 3 rows for 6 vertices"),
    ],
)
def test_wrong_command_lines_exit_with_2(run, words, text):
    np.savez("s.npz", train_masks=np.zeros((2, 6), bool))
    np.save("short.npy", np.zeros(3, int))
    before = sorted(os.listdir())
    assert re.search(text, refused(run, 2, *SPRING, *words))
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["divide"], "unknown command 'divide'. The commands are .*info.*partition"),
        (["partitoin"], "unknown command 'partitoin'. .*. Did you mean 'partition'"),
        (["train", "sdd"], "unknown command 'sdd'. .*. Did you mean 'sdt'"),
        (["partition", "g.bin", "--algorithm", "spring"], "-k is missing"),
        (["partition", "g.bin", "-k", "2", "--alg", "spring"], "unknown option '--alg'"),
        (["info"], "FILE is missing"),
        (["info", "g.bin", "--jsn"], "unknown option '--jsn'. Did you mean '--json'"),
        (["evaluate", "g.bin", "part", "surplus"], "unknown argument 'surplus'"),
        (
            ["evaluate", "g.bin", "part", "--of", "v"],
            "--of: unknown value 'v'. Valid values are vertices, edges",
        ),
        (["convert", "g.bin", "c.bin", "--relable"], "unknown option '--relable'. Did you mean '--relabel'"),
        (["convert", "g.bin", "g.bin"], "OUT: g.bin is the input"),
        (["generate", "rmat", "r.bin", "--n", "5"], "--m is missing"),
        (
            ["generate", "rmat", "r.bin", "--n", "5", "--m", "5", "--classes", "2"],
            r"unknown option '--classes' \(see `fastpart generate rmat --help`\)",
        ),
        (["generate", "rmat", "r.bin", "--n", "-5", "--m", "5"], "n: -5"),
        (
            ["generate", "rmat", "r.bin", "--n", "1.5", "--m", "5"],
            "--n: '1.5' is not a number",
        ),
        (["generate", "torus", "r.bin", "--n", "5", "--m", "5"], "unknown command 'torus'"),
        (["generate", "grid", "r.bin", "--rows", "5", "--columns", "5", "--n", "5"], "unknown option '--n'"),
        (["generate", "grid", "r.bin", "--rows", "5"], "--columns is missing"),
        (["convert", "g.bin", "c.bin", "--format", "gml"], "--format: unknown value 'gml'"),
    ],
)
def test_wrong_verbs_and_arguments_exit_with_2(run, arguments, text):
    assert re.search(text, refused(run, 2, *arguments))
    assert sorted(os.listdir()) == ["g.bin", "g.bin.json"]


# 1, 2, 6, 14, 46
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["info", "absent.bin"], "absent.bin: No such file or directory"),
        (["info", "."], r"\.: not a regular file \(a directory, in which \S+ holds no edges\)"),
        (["info", "/dev/null"], "/dev/null: not a regular file"),
        (["info", "odd.bin"], "odd.bin: length 9 is not a multiple of 8"),
        (["info", "bad.txt"], "bad.txt: line 2, column 3: "),
        (["convert", "bad.txt", "c.bin"], "bad.txt: line 2, column 3: "),
        (["convert", "text.txt", "absent/c.bin"], "absent: no such directory"),
        (["generate", "rmat", "absent/r.bin", "--n", "5", "--m", "5"], "absent: no such directory"),
        (["evaluate", "g.bin", "absent.npy"], "absent.npy: No such file or directory"),
        (["evaluate", "g.bin", "short.npy"], "the partition belongs to another graph: it has 3 vertices"),
        (["evaluate", "g.bin", "text.txt"], "text.txt: not one part per line"),
        (
            [*SPRING, "-o", "absent/part.npy"],
            "absent: the folder of the output does not exist. Create it first",
        ),
        ([*SPRING, "-o", "thesis"], "thesis: exists and is not a partition directory"),
        ([*SPRING, "--labels", "absent.npy"], "absent.npy: No such file or directory"),
        ([*SPRING, "--labels", "text.txt"], r"text\.txt: not a \.npy or \.npz of plain arrays"),
    ],
)
def test_what_is_refused_otherwise_exits_with_1(run, arguments, text):
    np.save("short.npy", np.zeros(3, int))
    os.mkdir("thesis")
    for name, content in {
        "odd.bin": "x" + "\0" * 8,
        "text.txt": "0 1\n",
        "bad.txt": "0 1\n1 x\n",
        "thesis/a": "",
    }.items():
        with open(name, "w") as file:
            file.write(content)
    before = sorted(os.listdir())
    assert re.search(text, refused(run, 1, *arguments))
    assert sorted(os.listdir()) == before


# 40
def test_memory_limit_below_the_need_names_the_number(run):
    said = refused(run, 1, *SPRING, "--memory-limit", "1M", "-o", "part.npy")
    assert said == (
        "spring on 6 vertices (32 bytes each) needs 8.4 MB of memory, but the budget is 1.0 MB. "
        "Raise --memory-limit or free memory"
    )
    assert not os.path.exists("part.npy")
    assert run(*SPRING, "--memory-limit", "1G")[0] == 0


def test_debug_shows_the_traceback(run):
    code, _, err = run("info", "absent.bin", "--debug")
    assert code == 1
    assert err.startswith("Traceback (most recent call last):")
    assert err.splitlines()[-1] == "fastpart: error: absent.bin: No such file or directory"
    code, _, err = run(*SPRING, "--passes", "0", "--debug")
    assert code == 2
    assert "Traceback" in err


def test_defects_are_told_from_refusals(run, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("fastpart.cli.commands.graph_info", broken)
    assert refused(run, 1, "info", "g.bin") == "internal error: RuntimeError: two lines (--debug shows where)"


@pytest.mark.parametrize(
    ("name", "text"), [("fastpart.lost", "internal error: ModuleNotFoundError: gone"), ("torch", "gone")]
)
def test_a_missing_module_of_ours_is_a_defect(run, monkeypatch, name, text):
    def broken(*_, **__):
        raise ModuleNotFoundError("gone", name=name)

    monkeypatch.setattr("fastpart.cli.commands.graph_info", broken)
    assert refused(run, 1, "info", "g.bin").startswith(text)


# 39
def test_interrupts_exit_with_130(run, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("fastpart.cli.commands.graph_info", interrupted)
    assert refused(run, 130, "info", "g.bin") == "interrupted"


# What goes to stderr.


@pytest.mark.filterwarnings("always::fastpart.errors.GraphWarning")
def test_assumptions_go_to_stderr_and_quiet_silences_them(run):
    os.remove("g.bin.json")
    code, out, err = run(*SPRING)
    assert code == 0
    assert re.fullmatch(r"fastpart: warning: g\.bin: assumed n = 6, the largest id \+ 1\. .*\n", err)
    assert "warning" not in out
    code, quiet, err = run(*SPRING, "-q", "-o", "part.npy")
    assert (code, err) == (0, "")
    # The table is the result; how long it took is not.
    assert quiet == f"{fp.evaluate('g.bin', fp.spring('g.bin', 2))}\n"
    assert run("generate", "rmat", "r.bin", "--n", 5, "--m", 5, "-q") == (0, "", "")


# 21
@pytest.mark.filterwarnings("default::fastpart.errors.CapacityWarning")
def test_warnings_are_one_line_on_stderr(run):
    code, _, err = run("partition", "g.bin", "-k", 9, "--algorithm", "spring", "--json")
    assert (code, err) == (0, "fastpart: warning: k=9 parts for 6 vertices. At least 3 parts are empty\n")


def test_version(run):
    assert run("--version") == (0, f"fastpart {fp.__version__}\n", "")
