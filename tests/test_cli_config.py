"""``--config``: options from a file, and the options that are saved beside a result."""

import os
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import config
from strategies import raw

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [5, 5]], dtype=np.uint32)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch, restored):
    monkeypatch.chdir(tmp_path)
    raw(tmp_path / "g.bin", EDGES)


def content(folder):
    return {
        os.path.relpath(os.path.join(at, name), folder): Path(os.path.join(at, name)).read_bytes()
        for at, _, names in os.walk(folder)
        for name in names
    }


def write(text, name="run.toml"):
    Path(name).write_text(text, encoding="utf-8")
    return name


# From a file.


def test_a_file_gives_arguments_and_options_and_the_command_line_overrides_them():
    write(
        'fastpart = "0.0.1"\n[partition]\nfile = "g.bin"\nk = 2\nalgorithm = "spring"\nbalance = 1.5\nseed = 7\n'
    )
    words = ["partition", "--config", "run.toml"]
    options = ["-k", "2", "--balance=1.5", "--seed=7"]
    assert config.expanded(words) == ["partition", "--algorithm=spring", "g.bin", *options]
    for typed in (
        ["other.bin"],
        ["-k", "3", "other.bin"],
        ["--balance", "1.1", "other.bin"],
        ["--seed=1", "other.bin"],
    ):
        left = config.expanded([*words, *typed])[1:]
        assert left[: len(typed)] == typed
        assert "g.bin" not in left
        flags = {word.partition("=")[0] for word in typed if word.startswith("-")}
        assert all(sum(word.partition("=")[0] == name for word in left) == 1 for name in flags)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("k = [4, 8]", ["-k", "4,8"]),
        ("fanouts = [15, 10]", ["--fanouts=15,10"]),
        ("fanouts = { cites = [15, 10], writes = [5] }", ["--fanouts=cites=15:10,writes=5"]),
        ("peers = false", ["--no-peers"]),
        ("peers = true", ["--peers"]),
        ("json = true", ["--json"]),
        ("json = false", []),
        ("cache = [0, 0.1]", ["--cache=0,0.1"]),
        ('memory-limit = "4G"', ["--memory-limit=4G"]),
        ('out = "a b.html"', ["--out=a b.html"]),
    ],
)
def test_values_become_what_the_shell_takes(text, words):
    write(f"[compare]\n{text}\n")
    assert config.expanded(["compare", "g.bin", "--config=run.toml"]) == ["compare", "g.bin", *words]


def test_short_options_and_negatives_override_too():
    write('peers = true\nout = "x.json"\nquiet = true\n')
    typed = ["compare", "g.bin", "-o", "y.json", "--no-peers", "-q"]
    assert config.expanded([*typed, "--config", "run.toml"]) == typed


def test_one_file_holds_several_verbs():
    write("seed = 3\n[generate.rmat]\nn = 10\nm = 20\n[generate.grid]\nseed = 4\n[evaluate]\nbalence = 1\n")
    assert config.expanded(["generate", "rmat", "x.bin", "--config", "run.toml"]) == [
        "generate", "rmat", "x.bin", "--seed=3", "--n=10", "--m=20"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("balence = 1", 2, "run.toml: unknown key 'balence' of partition. Did you mean 'balance'?"),
        ("memory_limit = 1", 2, "unknown key 'memory_limit' of partition. Did you mean 'memory-limit'?"),
        ("num_parts = 1", 2, "unknown key 'num_parts' of partition. Did you mean 'k'?"),
        ("[partition]\nparts = 2", 2, "unknown key 'parts' of partition. Did you mean 'k'?"),
        ('config = "run.toml"', 2, "unknown key 'config' of partition"),
        ('algorithm = "hash"\npasses = 2', 2, "unknown key 'passes' of partition --algorithm hash"),
        ('algorithm = "sprung"', 2, "unknown value 'sprung'"),
        ('balance = "much"', 2, "--balance: 'much' is not a number"),
        ("balance = ", 2, "--config: run.toml is not TOML"),
        ("k = 1\nk = 2", 2, "--config: run.toml is not TOML"),
    ],
)
def test_what_is_wrong_is_named(run, text, code, message):
    write(text)
    got, out, err = run("partition", "g.bin", "-k", 2, "--config", "run.toml")
    assert (got, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_file_that_cannot_be_read_is_named(run):
    assert run("partition", "g.bin", "--config", "absent.toml")[::2] == (
        1, "fastpart: error: absent.toml: No such file or directory\n"
    )  # fmt: skip
    assert "--config needs a value" in run("partition", "g.bin", "--config")[2]
    Path("bytes.toml").write_bytes(b"\xff")
    assert "bytes.toml is not TOML" in run("partition", "g.bin", "--config", "bytes.toml")[2]


# Beside a result.


def test_a_partition_directory_holds_its_options_and_they_repeat_it(run):
    np.save("x.npy", np.ones((6, 3), np.float32))
    given = (
        "--algorithm",
        "spring",
        "--balance",
        "1.5",
        "--seed",
        0,
        "--features",
        "x.npy",
        "--halo-hops",
        0,
    )
    assert run("partition", "g.bin", "-k", 2, *given, "--threads", 1, "-o", "parts/")[0] == 0
    options = tomllib.loads(Path("parts/run.toml").read_text())
    assert options.pop("fastpart") == fp.__version__
    assert options["partition"] == {
        "file": "g.bin", "algorithm": "spring", "k": 2, "balance": 1.5, "seed": 0, "features": "x.npy", "halo-hops": 0,
    }  # fmt: skip
    assert run("partition", "--config", "parts/run.toml", "-o", "other/")[0] == 0
    assert content("other") == content("parts")
    assert run("verify", "parts")[0] == 0
    assert run("partition", "--config", "parts/run.toml", "-o", "parts/")[0] == 0
    fp.open_partition("parts").save("parts", graph="g.bin", overwrite=True)
    assert "run.toml" not in os.listdir("parts")


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (["partition", "g.bin", "-k", "2", "--algorithm", "spring"], "part.npy"),
        (["partition", "g.bin", "-k", "2", "--algorithm", "dbh"], "edges.npy"),
        (["evaluate", "g.bin", "p.npy", "-k", "3"], "e.json"),
        (["compare", "g.bin", "-k", "2", "--algorithms", "spring,spring:passes=2", "--no-peers"], "c.md"),
        (["cluster", "g.bin", "--max-volume", "100"], "clusters.npy"),
        (["edges-of", "g.bin", "p.npy"], "of.npy"),
    ],
)
def test_the_options_lie_beside_a_file_and_repeat_it(run, words, out):
    np.save("p.npy", np.array([0, 0, 0, 1, 1, 1]))
    assert run(*words, "-o", out)[0] == 0
    assert f"{out}.run.toml" in os.listdir()
    assert run(words[0], "--config", f"{out}.run.toml", "-o", f"again{os.path.splitext(out)[1]}")[0] == 0
    again = f"again{os.path.splitext(out)[1]}"
    if not out.startswith("c."):  # which has seconds
        assert Path(again).read_bytes() == Path(out).read_bytes()
    assert Path(f"{again}.run.toml").read_bytes() == Path(f"{out}.run.toml").read_bytes()


def test_a_file_of_the_users_stays(run):
    write("mine", "part.npy.run.toml")
    code, _, err = run("partition", "g.bin", "-k", 2, "--algorithm", "spring", "-o", "part.npy")
    assert code == 0
    assert "part.npy.run.toml was not written by fastpart" in err
    assert Path("part.npy.run.toml").read_text() == "mine"


VALUES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
)


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.one_of(VALUES, st.lists(VALUES)))
)
def test_values_survive_the_file(values):
    assert tomllib.loads(f"a = {config._toml(values)}")["a"] == values
