"""Files of the directories that fastpart writes, as entries of tests/data/bits.json."""

import tempfile
from pathlib import Path

import numpy as np

import fastpart as fp
from attributed import attributed
from edge_partitioned import planted_edges

from .graphs import directory
from .shell import GIVEN, QUICK, in_workspace
from .stable import digest_of_file


def _saved(name):
    return lambda folder: Path(directory(name).folder)


def _with_everything(folder):
    graph, rows = attributed()
    partition = fp.algorithms.ldg(graph, 3)
    partition.save(folder / "parts", **rows, halo_hops=2, halo_features=True)
    fp.open_partition(folder / "parts", of="vertices").save_cache(0.2, fanouts=[4, 3], batch_size=40)
    return folder / "parts"


def _of_edges(folder):
    return planted_edges(folder, n=200, m=1200, edge_features=np.arange(2400.0).reshape(1200, 2))


def _by(words):
    """Return what writes a directory by commands of the shell. The files whose names begin with "out" are its files."""

    def write(folder):
        in_workspace(words, folder)
        return folder

    return write


CORE = {
    "partition": _saved("plain"),
    "partition, all options": _with_everything,
    "partition, int8": _saved("plain int8 by row"),
    "partition, times": _saved("plain temporal"),
    "partition, edge splits": _saved("plain links"),
    "partition, typed": _saved("typed temporal"),
    "partition, typed, edge splits": _saved("typed links"),
    "partition, edges": _of_edges,
    "partition, shell": _by(f"partition g.bin -k 3 --algorithm spring -o out {GIVEN}"),
    "partition, typed, shell": _by("partition graph -k 2 --algorithm ldg -o out"),
    "partition, edges, shell": _by("partition g.bin -k 2 --algorithm hdrf -o out"),
    "partition, file": _by("partition g.bin -k 2 --algorithm ldg -o out.parquet"),
    "refine": _by("refine g.bin parts -o out"),
    "update": _by("update g.bin parts -k 4 -o out"),
    "edges-of": _by("edges-of g.bin parts -o out"),
    "evaluate": _by("evaluate g.bin parts -o out.json"),
    "cluster": _by("cluster g.bin -o out.npy"),
    "order": _by("order g.bin -o out.bin"),
    "convert": _by("convert g.txt out.bin --relabel"),
    "split-edges": _by("split-edges g.bin out.bin"),
    "split-edges, typed": _by("split-edges graph out.bin"),
    "generate, typed": _by("generate typed out --scale 0.0001"),
    "ingest": _by("ingest lake/schema.yaml -o out"),
    "plan": _by("plan parts --epochs 2 --fanouts 4,3 --batch-size 20 --memory 1K -o out"),
    "restore": _by("restore typed-parts --graph graph -o out"),
    "compare, json": _by("compare g.bin -k 2,3 --algorithms ldg,hdrf --threads 2 -o out.json"),
    "compare, csv": _by("compare g.bin -k 2,3 --algorithms ldg,hdrf --threads 2 -o out.csv"),
    "export, text": _by("export text parts out"),
    "export, wholegraph": _by("export wholegraph parts out"),
}
"""What writes each directory and returns it, by its name."""

OF_TORCH = {
    "export, pyg": _by("export pyg parts out"),
    "export, pyg, typed": _by("export pyg typed-parts out"),
    "export, glt": _by("export glt parts out"),
    "run, sampled": _by(f"train sampled parts {QUICK} --workers 1 -o out --log out.jsonl"),
    "run, sdt": _by(f"train sdt parts {QUICK} --workers 1 -o out"),
    "run, links": _by(f"train links link-parts {QUICK} --embeddings 4 --workers 1 -o out"),
    "run, embeddings": _by(
        "train embeddings link-parts --width 4 --epochs 2 --batch-size 100 --threads 1 --workers 1 -o out"
    ),
}
"""What needs torch."""

CASES = CORE | OF_TORCH


def found(name):
    """Write a directory, and return the digest of each of its files."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        home = CASES[name](scratch)
        pattern = "out*" if home == scratch else "*"
        files = [file for each in home.glob(pattern) for file in (each, *each.rglob("*")) if file.is_file()]
        return {
            str(file.relative_to(home)): digest_of_file(file, scratch, name.startswith("run"))
            for file in sorted(set(files))
        }
