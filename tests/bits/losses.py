"""Losses and scores of every method and model over three epochs, as entries of tests/data/bits.json.

They come from kernels of torch, which add up in an order of their own: numbers of another version, processor or number
of threads differ in the last digits. So six digits are kept, and compared with the tolerances below. Names and types of
the columns of the history, and the names in the summary, must be the same.
"""

import json
import math
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numpy as np

import fastpart as fp
from edge_partitioned import planted_edges
from fastpart.train.plugged import MODELS, TYPED_MODELS
from in_process import one_worker
from trainable import planted

from .batches import BY_RELATION
from .digests import digest
from .graphs import directory, root

TOLERANCE = 2e-5
"""Of losses, relative. Six digits round by 5e-6 at most. Kernels without AVX change losses by 3e-7, torch 2.2 does by
2e-6."""

SCORES_TOLERANCES = {"accuracy": (0.0, 0.041), "f1": (0.0, 0.041), "hits": (0.0, 0.02)}
"""Of scores that count, relative and absolute. A vertex whose two best classes are nearly equal may change its class,
and two of the 50 that are scored may. Other scores are means of ranks."""

OTHER_TOLERANCE = 0.01, 0.0

QUICK = {"hidden": 8, "threads": 1, "epochs": 3}
BATCHES = {**QUICK, "batch_size": 50, "fanouts": [4, 3]}
FACTS = {"threads": 1, "epochs": 3, "batch_size": 64, "width": 6, "negatives": 9}
TIMED = {**BATCHES, "fanouts": [3, 2]}

CASES = {
    **{
        f"{method}, plain, {model}": (method, "plain", {**QUICK, "model": model, **batches})
        for model in MODELS
        for method, batches in (("full", {}), ("sampled", {"batch_size": 50}))
    },
    **{
        f"sampled, typed, {model}": ("sampled", "typed", {**QUICK, "model": model, "batch_size": 30})
        for model in TYPED_MODELS
    },
    "full, plain, batches": ("full", "plain", BATCHES),
    "full, edges": ("full", "edges", QUICK),
    "sampled, plain, labor": ("sampled", "plain", {**BATCHES, "sampling": "labor"}),
    "sampled, plain, float64": ("sampled", "plain", {**BATCHES, "precision": "float64"}),
    "sampled, plain, cache": ("sampled", "plain", {**BATCHES, "cache": 0.2, "scores": "sampled"}),
    "sampled, typed, by relation": (
        "sampled",
        "typed",
        {**BATCHES, "model": "rgcn", "fanouts": BY_RELATION, "scores": "sampled"},
    ),
    **{
        f"sampled, {graph} temporal, {rule}": (
            "sampled",
            f"{graph} temporal",
            {**TIMED, "temporal": rule, **model},
        )
        for graph, model in (("plain", {}), ("typed", {"model": "rgcn"}))
        for rule in ("uniform", "last")
    },
    "bytegnn, plain": ("bytegnn", "plain", BATCHES),
    "bytegnn, typed": ("bytegnn", "typed", {**BATCHES, "model": "rgcn"}),
    "sdt, plain": ("sdt", "plain", QUICK),
    "sdt, typed": ("sdt", "typed", {**QUICK, "model": "rgcn"}),
    "sdt, plain, gradients": ("sdt", "plain", {**QUICK, "average": "gradients"}),
    "sdt, plain, graphsaint": ("sdt", "plain", {**QUICK, "model": "graphsaint", "average_every": 2}),
    "sancus, one part": ("sancus", "one part", QUICK),
    "sancus, two parts": ("sancus", "two parts", {**QUICK, "max_age": 2}),
    "distgnn, one part": ("distgnn", "one part of edges", QUICK),
    "distgnn, two parts": ("distgnn", "two parts of edges", {**QUICK, "delay": 2}),
    "armada, two parts": ("armada", "two parts", BATCHES),
    "armada, typed": ("armada", "typed", {**BATCHES, "model": "rgcn", "fanouts": BY_RELATION}),
    **{
        f"links, plain, {decoder}": ("links", "plain links", {**BATCHES, "decoder": decoder})
        for decoder in ("cosine", "dot", "mlp")
    },
    "links, plain, learned": ("links", "plain links", {**BATCHES, "embeddings": 6, "negatives": "batch"}),
    "links, typed": ("links", "typed links", {**BATCHES, "model": "rgcn"}),
    "edges, plain": ("edges", "plain edge labels", BATCHES),
    "edges, typed": ("edges", "typed edge labels", {**BATCHES, "model": "rgcn", "relation": "writes"}),
    "links, plain temporal": ("links", "plain links temporal", {**TIMED, "temporal": "last"}),
    **{
        f"embeddings, {graph}, {decoder}": ("embeddings", f"{graph} links", {**FACTS, "decoder": decoder})
        for graph in ("plain", "typed")
        for decoder in ("dot", "distmult", "complex", "rotate")
    },
    "embeddings, typed, binary": (
        "embeddings",
        "typed links",
        {**FACTS, "objective": "binary", "negatives": {"degree": 9}, "reciprocal": True},
    ),
    "embeddings, typed, rgcn": ("embeddings", "typed links", {**FACTS, "encoder": "rgcn", "hidden": 8}),
}
"""Method, source and options, by the name of the entry."""

PROCESSES = {"sancus, two parts", "distgnn, two parts", "armada, two parts", "armada, typed"}
"""What only several processes can train, or only they exchange anything."""

OWN_NUMBER = {"full", "sancus", "distgnn", "armada"}
"""Methods that take no number of workers."""

RANKED = {"links", "embeddings"}
"""Methods that have no baselines."""


@cache
def _source(name):
    """Return a partition directory to train over."""
    folder = root() / f"train {name}"
    folder.mkdir()
    rows = {"edge_features": np.random.default_rng(2).standard_normal((1200, 3)).astype(np.float32)}
    match name:
        case "plain":
            return planted(folder, k=3, n=200, m=1200, **rows)
        case "one part" | "two parts":
            return planted(folder, k=1 + (name == "two parts"), n=200, m=1200)
        case "edges":
            return planted_edges(folder, n=200, m=1200)
        case "one part of edges" | "two parts of edges":
            return planted_edges(folder, k=1 + name.startswith("two"), n=200, m=1200)
    return Path(directory(name).folder)


def found(name):
    """Train, and return the losses of the epochs and the scores that follow from the weights."""
    method, source, options = CASES[name]
    more = {} if method in OWN_NUMBER else {"workers": 1}
    more |= {} if method in RANKED else {"baselines": False}
    with nullcontext() if name in PROCESSES else one_worker():
        trained = getattr(fp.train, method)(_source(source), **options, **more)
    history, summary = trained.history.to_dict(as_series=False), trained.summary
    scores = {key: values for key, values in history.items() if key.startswith("val_")}
    scores |= {key: value for key, value in summary.items() if key.startswith("test_")}
    told = [*((name, str(dtype)) for name, dtype in trained.history.schema.items()), *summary]
    return {
        "loss": _six_digits(history["loss"]),
        "scores": _six_digits(scores),
        "columns": digest(json.dumps(told).encode())[:12],
    }


def _six_digits(value):
    if isinstance(value, dict):
        return {key: _six_digits(each) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [_six_digits(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def is_same(entry, recorded):
    """Return whether two entries are the same but for rounding."""
    scores, others = entry["scores"], recorded["scores"]
    return (
        entry["columns"] == recorded["columns"]
        and _is_close(entry["loss"], recorded["loss"], TOLERANCE, 0.0)
        and scores.keys() == others.keys()
        and all(_is_close(scores[name], others[name], *_tolerance(name)) for name in scores)
    )


def _tolerance(score):
    return next((each for name, each in SCORES_TOLERANCES.items() if name in score), OTHER_TOLERANCE)


def _is_close(one, other, relative, absolute):
    if isinstance(one, list):
        return len(one) == len(other) and all(
            _is_close(*pair, relative, absolute) for pair in zip(one, other, strict=True)
        )
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=relative, abs_tol=absolute)
