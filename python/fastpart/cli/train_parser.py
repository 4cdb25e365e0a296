"""What ``fastpart train`` accepts."""

from __future__ import annotations

from typing import Any

from . import training
from .arguments import add_input, add_verb, count

SUMMARIES = {
    "full": "Train on the whole graph in one process: the reference.",
    "distdgl": "Train with DGL's distributed engine: sampled mini-batches, servers that hold the parts.",
    "sdt": "Train a copy of the model on every part with its halo, and average the copies.",
    "distgnn": "Train with full batches over parts of the edges: sums travel between the copies of vertices.",
    "sancus": "Train with full batches over blocks of rows, skipping broadcasts of what has hardly changed.",
}

_OWN_OPTIONS = {
    "distdgl": " --trainers-per-part 2",
    "sdt": " --workers 2 --average-every 5",
    "distgnn": " --delay 5",
    "sancus": " --rows boundary",
}
"""In the example of a method."""


def add_train(verbs: Any) -> None:
    """Add the verb and its methods."""
    train = verbs.add_parser(
        "train",
        help="train a graph neural network over a partition directory",
        description="Train a graph neural network over a partition directory (pip install 'fastpart[train]').",
        allow_abbrev=False,
    )
    methods = train.add_subparsers(title="methods", metavar="METHOD", required=True)
    for name, summary in SUMMARIES.items():
        _add_method(methods, name, summary)
    _add_train_compare(methods)


def _add_method(methods: Any, name: str, summary: str) -> None:
    more = _OWN_OPTIONS.get(name, "")
    method = add_verb(
        methods,
        name,
        training.train_over,
        summary,
        f"fastpart train {name} parts/\n"
        f"fastpart train {name} parts/ --model gcn --hidden 32 --epochs 200 --patience 20{more} -o run/",
    )
    method.set_defaults(method=name)
    method.add_argument(
        "source", metavar="PARTS", help="a partition directory with features, labels and splits"
    )
    method.add_argument("--seed", type=count, default=0, help="default 0")
    method.add_argument(
        "-o", dest="out", metavar="DIR", help="folder for the checkpoint, the best weights and the history"
    )
    method.add_argument("--resume", action="store_true", help="go on from the checkpoint in DIR")


def _add_train_compare(methods: Any) -> None:
    compare = add_verb(
        methods,
        "compare",
        training.compare,
        "Train by several methods over the parts of several partitioners, and print one table.",
        "fastpart train compare g.bin -k 4 --features x.npy --labels y.npy --splits s.npz \\\n"
        "      --methods distdgl,sdt,full --partitioners spring,sigma,random --epochs 50\n"
        "fastpart train compare g.bin -k 4 --features x.npy --labels y.npy --splits s.npz \\\n"
        "      --methods distgnn,sancus --partitioners sigma,hdrf,dbh,random -o report.html",
    )
    add_input(compare)
    compare.add_argument("-k", type=int, required=True, help="number of parts")
    compare.add_argument("--features", metavar="FILE", required=True, help="one row per vertex")
    compare.add_argument("--labels", metavar="NPY", required=True, help="class of each vertex")
    compare.add_argument("--splits", metavar="NPZ", required=True, help="train, val, test")
    compare.add_argument("--split", type=int, metavar="I", help="row of train_masks, val_masks, test_masks")
    compare.add_argument(
        "--methods",
        "--method",
        metavar="NAME,...",
        default="distdgl,sdt,full",
        help=f"some of: {', '.join(SUMMARIES)} (default: distdgl,sdt,full)",
    )
    compare.add_argument(
        "--partitioners",
        metavar="NAME,...",
        help="of vertices, for distgnn of edges (default: spring,sigma,grem,random; for distgnn sigma,hdrf,dbh,random)",
    )
    compare.add_argument(
        "--seeds", type=int, default=3, help="trainings of each method and partitioner (default 3)"
    )
    compare.add_argument(
        "-o",
        dest="out",
        metavar="OUT",
        help=".parquet (the table), .html (a page), .svg, .png or .pdf (plots of seconds and memory)",
    )
