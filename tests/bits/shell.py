"""What the shell prints, as entries of tests/data/bits.json: the help and the JSON of all verbs."""

import io
import json
import logging
import shutil
import warnings
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fastpart.cli import main
from fastpart.measures import info, reading
from in_process import one_worker
from test_cli_help import COMMANDS, METHODS

from .digests import digest
from .graphs import root
from .stable import digests_of_json, stable, stable_text

SCHEMAS = Path(__file__).parents[1] / "data" / "schemas"

FAMILIES = ("", "generate", "export", "partition", "train")
TRAINING = (*METHODS, "links", "edges", "embeddings", "compare")
HELP = tuple(
    f"fastpart {verb}".strip()
    for verb in (*FAMILIES, *COMMANDS, "conversions", *(f"train {name}" for name in TRAINING))
)
"""All verbs and those below them."""

LABELLED = "--labels g.bin.labels.npy --splits s.npz"
GIVEN = f"--features g.bin.features.npy {LABELLED}"
QUICK = "--epochs 2 --hidden 4 --threads 1"

WORKSPACE = f"""
generate planted g.bin --n 120 --m 600 --classes 4 --features 5 --seed 1
convert g.bin g.txt
generate typed lake --scale 0.0001
ingest lake/schema.yaml -o graph
partition g.bin -k 3 --algorithm spring -o parts {GIVEN}
partition g.bin -k 1 --algorithm spring -o one-part {GIVEN}
partition g.bin -k 2 --algorithm hdrf -o edge-parts {GIVEN}
partition g.bin -k 1 --algorithm hdrf -o one-edge-part {GIVEN}
partition graph -k 2 --algorithm spring -o typed-parts
split-edges g.bin t.bin
partition t.bin -k 2 --algorithm spring -o link-parts --edge-splits t.bin.splits.npz
compare g.bin -k 2 --algorithms spring,hdrf -o comparison.json
"""
"""What makes the files that the commands below read."""

JSON = f"""
generate rmat out.bin --n 128 --m 600
generate ba out.bin --n 100 --m 500
generate planted out.bin --n 60 --m 200 --classes 3 --features 2
generate grid out.bin --rows 5 --columns 7
generate typed out --scale 0.0001
convert g.txt out.bin --relabel
convert g.bin out.bin --dedup --drop-loops --shuffle
ingest lake/schema.yaml -o out
split-edges g.bin out.bin
split-edges graph out.bin
info g.bin --memory-limit 2G --threads 2
info g.txt -k 4 --memory-limit 2G --threads 2
info graph --memory-limit 2G --threads 2
info parts
info edge-parts
info typed-parts
info link-parts
partition g.bin -k 3
partition g.bin -k 3 --of edges
partition g.bin -k 3 --effort best
partition g.bin -k 3 --algorithm spring -o out {GIVEN}
partition graph -k 2 --algorithm multilevel --balance-on vertices
partition g.bin -k 3 --algorithm hdrf -o out.npy
partition graph -k 2 --algorithm multilevel -o out
refine g.bin parts -o out
update g.bin parts -k 4 -o out
edges-of g.bin parts -o out
evaluate g.bin parts {LABELLED}
evaluate g.bin edge-parts
evaluate graph typed-parts
cluster g.bin
cluster g.bin --method hollocou
order g.bin -o out.bin
order g.bin --partition parts -o out.bin
compare g.bin -k 2,3 --algorithms spring,hdrf,random --fanouts 4,3 --threads 2 {LABELLED}
compare g.bin t.bin -k 2 --algorithms ldg --seeds 2 --threads 2
export text parts out
export wholegraph parts out
plan parts --epochs 2 --fanouts 4,3 --batch-size 20
plan parts --epochs 2 --fanouts 4,3 --batch-size 20 --memory 1K -o out
conversions
upgrade parts
upgrade old
restore typed-parts --graph graph -o out
verify parts
verify typed-parts
work job --task 0
""".strip().split("\n")
"""Commands that print JSON. Each runs in a folder of its own with the files of the workspace."""

TRAINED = f"""
export pyg parts out
export pyg typed-parts out
export glt parts out
info parts --train --workers 2 --memory-limit 8G --threads 2
info typed-parts --train --workers 2 --memory-limit 8G --threads 2
train full parts {QUICK}
train sampled parts {QUICK} --workers 1
train bytegnn parts {QUICK} --workers 1
train sdt parts {QUICK} --workers 1
train distgnn one-edge-part {QUICK}
train sancus one-part {QUICK}
train links link-parts {QUICK} --embeddings 4 --workers 1
train embeddings link-parts --width 4 --epochs 2 --batch-size 100 --threads 1 --workers 1
train compare g.bin -k 2 {GIVEN} --methods sdt,full --partitioners spring {QUICK}
""".strip().split("\n")
"""Commands that print JSON and need torch. ``train armada`` is left out: its messages hold times, so the bytes that it
sends differ."""


@contextmanager
def shell(folder):
    """Undo what the command line sets up for its process, and keep conversions out of the cache of others."""
    log, show = logging.getLogger("fastpart"), warnings.showwarning
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "100")
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setattr(reading, "SECONDS", 0.01)
        patch.setattr(info, "slowness", lambda: 1.0)
        try:
            yield
        finally:
            warnings.showwarning = show
            log.handlers.clear()
            log.setLevel(logging.NOTSET)


def run(words):
    """Run a command in this process, and return what it prints."""
    printed, told = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(told):
        code = main(words.split())
    assert code == 0, f"fastpart {words}: {told.getvalue()}"
    return printed.getvalue()


def help_of(verb):
    """Return the digest of a help text, in lines of a fixed width."""
    with shell(root()):
        return digest(stable_text(run(f"{verb.removeprefix('fastpart')} --help")).encode())


@cache
def workspace():
    """Return a folder with graphs, partitions and what belongs to them."""
    folder = root() / "workspace"
    folder.mkdir()
    order = np.random.default_rng(0).permutation(120)
    np.savez(folder / "s.npz", train=order[:60], val=order[60:90], test=order[90:])
    shutil.copytree(SCHEMAS / "1" / "vertices", folder / "old")
    (folder / "job").mkdir()
    with shell(folder):
        for line in WORKSPACE.strip().split("\n"):
            run(f"{line} --quiet")
    shutil.rmtree(folder / "cache", ignore_errors=True)
    return folder


def in_workspace(words, folder):
    """Run a command in a folder with a copy of the workspace, and return what it prints."""
    shutil.copytree(workspace(), folder, dirs_exist_ok=True)
    here = words.startswith("train ") and not words.startswith(
        "train armada"
    )  # which has two processes at least
    with shell(folder), one_worker() if here else nullcontext():
        return run(words)


def json_of(words, folder):
    """Run a command in a folder with a copy of the workspace, and return the digest of each thing that it tells."""
    told = json.loads(in_workspace(f"{words} --json", folder))
    return digests_of_json(stable(told, folder, words.startswith("train ")))
