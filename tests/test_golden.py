"""Partitions and generated graphs as they were: a change needs an entry in CHANGELOG.md that says why.

With such a reason, write the digests again: ``python tests/test_golden.py > tests/data/golden.json``.
"""

import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp

pytestmark = pytest.mark.filterwarnings("ignore:chunk:UserWarning")
ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).with_name("data") / "golden.json"

SPLITS = {"train": np.arange(0, 2500, 5), "val": np.arange(1, 2500, 50), "test": np.arange(2, 2500, 10)}

OPTIONS = {
    "spring": {},
    "spring, batch=1": {"batch": 1},
    "spring, passes=2": {"passes": 2},
    "spring, strict=False": {"strict": False},
    "spring, batch=4096, balance=1.2": {"batch": 4096, "balance": 1.2},
    "ldg": {},
    "fennel": {},
    "fennel, batch=64": {"batch": 64},
    "reldg": {},
    "refennel": {},
    "bytegnn": {"splits": SPLITS},
    "bytegnn, rule=paper": {"splits": SPLITS, "rule": "paper"},
    "random": {},
    "random, seed=1": {"seed": 1},
    "random, of=edges": {"of": "edges"},
    "hash": {},
    "grem": {},
    "grem, revise=False": {"revise": False},
    "grem, faithful=True": {"faithful": True},
    "sigma": {},
    "sigma, objective=cut": {"objective": "cut"},
    "sigma, of=edges": {"of": "edges"},
    "sigma, of=edges, bands=1": {"of": "edges", "bands": 1},
    "hdrf": {},
    "greedy": {},
    "dbh": {},
    "dbh, seed=1": {"seed": 1},
    "hep": {},
    "hep, tau=1": {"tau": 1.0},
    "two_phase": {},
    "two_phase, batch=1": {"batch": 1},
    "two_phase, scoring=hdrf": {"scoring": "hdrf"},
    "multilevel": {},
    "multilevel, volume_balance=1.3": {"volume_balance": 1.3},
}
PARTS = (2, 8, 32)
RMAT = {"n": 50_000, "m": 300_000, "seed": 1}

GENERATED = {
    "ba": lambda out: fp.generate.ba(out, n=20_000, m=150_000, seed=1),
    "ba, m < n": lambda out: fp.generate.ba(out, n=2**17, m=70_000, seed=2**64 - 1),
    "grid": lambda out: fp.generate.grid(out, rows=123, columns=45),
    "shuffled": lambda out: fp.convert(
        fp.generate.rmat(out.with_name("source"), **RMAT).path,
        out,
        drop_loops=True,
        dedup=True,
        shuffle=True,
        seed=1,
    ),
    "rmat": lambda out: fp.generate.rmat(out, **RMAT),
    "rmat, n=2**17": lambda out: fp.generate.rmat(out, n=2**17, m=70_000, seed=2**64 - 1),
    "planted": lambda out: fp.generate.planted(out, n=5000, m=70_000, classes=7, features=5, seed=1),
}


def digest(content):
    return hashlib.sha256(content).hexdigest()[:32]


def graphs(folder):
    """Open the graphs, by name."""
    for name in ("cora", "amazon-computers"):
        yield (
            name,
            fp.convert(ROOT / "python" / "fastpart" / "datasets" / f"{name}.txt.gz", folder / f"{name}.bin"),
        )
    yield "rmat", fp.generate.rmat(folder / "rmat.bin", **RMAT)


def partitions(folder):
    """Return the digest of every partition, by graph and parameters."""
    return {
        f"{name}, {algorithm}, k={k}": digest(
            getattr(fp.algorithms, algorithm.split(",")[0])(edges, k, **options)
            .assignment.astype("<i4", copy=False)
            .tobytes()
        )
        for name, edges in graphs(folder)
        for algorithm, options in OPTIONS.items()
        for k in PARTS
    }


def files(folder, name):
    """Return the digest of every file that a generator writes, but the archive, by suffix."""
    GENERATED[name](folder / "g")
    written = {
        path.name[1:]: digest(path.read_bytes()) for path in folder.glob("g*") if path.suffix != ".npz"
    }
    for split in folder.glob("g*.npz"):
        with np.load(split) as arrays:
            written |= {f"{split.name[1:]}, {key}": digest(ids.tobytes()) for key, ids in arrays.items()}
    return {f"{name}{suffix}": value for suffix, value in sorted(written.items())}


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text())


def changed(found, expected):
    names = [name for name in found if found[name] != expected.get(name)]
    return f"{', '.join(names)}: no longer what they were; that needs a reason in CHANGELOG.md (see above)"


def test_partitions_are_what_they_were(tmp_path, golden):
    found = partitions(tmp_path)
    assert found == golden["partitions"], changed(found, golden["partitions"])


@pytest.mark.parametrize("name", GENERATED)
def test_generated_files_are_what_they_were(tmp_path, golden, name):
    found = files(tmp_path, name)
    expected = golden["files"][name]
    assert found == expected, changed(found, expected)


def main():
    with tempfile.TemporaryDirectory() as folder:
        content = {"partitions": partitions(Path(folder)), "files": {}}
    for name in GENERATED:
        with tempfile.TemporaryDirectory() as folder:
            content["files"][name] = files(Path(folder), name)
    print(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
