"""Batches of every loader, as entries of tests/data/bits.json: the arrays of two epochs, and what was read for them."""

import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from fastpart.measures import reading

from .digests import digest_of
from .graphs import SIZES, N, directory

SAMPLINGS = ("uniform", "labor", "weighted")
CACHES = ("access", "degree", "links", "halo")
RANK = {"rank": 1, "world_size": 3}
FETCHINGS = {
    "ahead=0": {"ahead": 0, **RANK},
    "ahead=5, threads=2": {"ahead": 5, "threads": 2, **RANK},
    **{f"cache by {by}": {"cache": 0.2, "cache_by": by, **RANK} for by in CACHES},
    "cache=1K": {"cache": "1K", **RANK},
    "resident": {"resident": "2K", **RANK},
    "io=direct": {"io": "direct"},
}
"""How rows are read, which must not change a batch. The counts of what is read differ."""

BY_RELATION = {"cites": [3, 2], "rev_writes": [2, 2], "has_topic": [1, 0]}


def grid(**axes):
    """Return options by name, for all combinations of some options."""
    return {
        ", ".join(f"{name}={value}" for name, value in zip(axes, values, strict=True)): dict(
            zip(axes, values, strict=True)
        )
        for values in product(*axes.values())
    }


def ranks(size):
    """Return the options of each of so many ranks."""
    return {f"rank {rank} of {size}": {"rank": rank, "world_size": size} for rank in range(size)}


PLAIN = {
    **grid(sampling=SAMPLINGS, merged=(False, True)),
    "no ids of edges": {"edge_ids": False},
}
SEEDS = {
    "val": {"seeds": "val"},
    "seed=7": {"seed": 7},
    "drop_last": {"drop_last": True},
    "one hop of all": {"fanouts": [-1]},
    "three hops": {"fanouts": [3, 0, 2]},
}
STORED = {"": {}, "resident": {"resident": "2K"}, "planned": {"plan": None}, "no ids": {"edge_ids": False}}
TEMPORAL = grid(temporal=("uniform", "last"))
LINKS = grid(negatives=("uniform", "batch", "local"), num_negatives=(1, 3))
LINKS_OF = {
    "val": {"seeds": "val"},
    "test": {"seeds": "test"},
    "pairs": {"seeds": np.array([[1, 250], [3, 170], [250, 1], [9, 300 - 1], [161, 20]])},
    "merged": {"merged": True},
    "labor": {"sampling": "labor"},
    "seed=7": {"seed": 7},
    "drop_last": {"drop_last": True},
    "mixture": {"negatives": {"uniform": 2, "degree": 1, "batch": 1}},
    "no ids of edges": {"edge_ids": False},
    "all neighbours": {"fanouts": [-1, -1]},
    "ahead=0": {"ahead": 0},
    "cache": {"cache": 0.2, **RANK},
    "resident": {"resident": "2K"},
    **ranks(2),
}
TIMES_OF_SEEDS = {"seeds": np.array([5, 5, 100, 20]), "input_time": np.array([3, 50, 50, 20])}

GROUPS = {
    ("plain", "loader"): {
        "": {},
        **PLAIN,
        **SEEDS,
        **FETCHINGS,
        **ranks(3),
        "ids": {"seeds": np.array([7, 3, 250, 41])},
        "mask": {"seeds": np.arange(N) % 7 == 0},
        "planned": {"plan": None},
        "scheduled": {"scheduled": True},
        "scheduled, cache": {"scheduled": True, "cache": 0.2, **RANK},
        "planned with memory": {"plan": "1K"},
        "planned, rank 1 of 2": {"plan": None, **ranks(2)["rank 1 of 2"]},
        "labor, rank 1 of 3": {"sampling": "labor", **RANK},
        "merged, rank 1 of 3": {"merged": True, **RANK},
        "scheduled, labor, merged": {"scheduled": True, "sampling": "labor", "merged": True},
    },
    ("plain directed", "loader"): PLAIN,
    ("plain symmetric", "loader"): grid(sampling=SAMPLINGS),
    ("plain bare", "loader"): {"ids": {"seeds": np.arange(0, N, 9)}},
    ("plain int8 by row", "loader"): STORED,
    ("plain int8 by column", "loader"): STORED,
    ("plain float16", "loader"): STORED,
    ("plain temporal", "loader"): {
        **TEMPORAL,
        "last, val": {"temporal": "last", "seeds": "val"},
        "last, all": {"temporal": "last", "fanouts": [-1, -1]},
        "last, one hop": {"temporal": "last", "fanouts": [2]},
        "uniform, seed=7": {"temporal": "uniform", "seed": 7},
        "uniform, ahead=0": {"temporal": "uniform", "ahead": 0},
        "uniform, times of seeds": {"temporal": "uniform", **TIMES_OF_SEEDS},
        "last, planned": {"temporal": "last", "plan": None},
        "uniform, cache": {"temporal": "uniform", "cache": 0.2, **RANK},
        "uniform, no ids": {"temporal": "uniform", "edge_ids": False},
        **{name: {"temporal": "uniform", **of_rank} for name, of_rank in ranks(2).items()},
    },
    ("plain times of vertices", "loader"): TEMPORAL,
    ("plain times of edges", "loader"): {
        name: {**options, "seeds": np.arange(50), "input_time": np.arange(50) * 2}
        for name, options in TEMPORAL.items()
    },
    ("typed", "loader"): {
        "": {},
        "labor": {"sampling": "labor"},
        "no ids of edges": {"edge_ids": False},
        **SEEDS,
        **FETCHINGS,
        **ranks(3),
        "by relation": {"fanouts": BY_RELATION},
        "labor, rank 1 of 3": {"sampling": "labor", **RANK},
        "labor, seed=7": {"sampling": "labor", "seed": 7},
        "by relation, rank 1 of 3": {"fanouts": BY_RELATION, **RANK},
        "by relation, labor": {"fanouts": BY_RELATION, "sampling": "labor"},
        "planned": {"plan": None},
        "planned with memory": {"plan": "1K", "fanouts": BY_RELATION},
        "planned, scheduled, rank 1 of 2": {"plan": None, "scheduled": True, **ranks(2)["rank 1 of 2"]},
        "authors": {"seeds": np.arange(0, SIZES["author"], 3), "input": "author"},
        "fields, labor": {"seeds": np.arange(160, 180), "input": "field", "sampling": "labor"},
    },
    ("typed temporal", "loader"): {
        **TEMPORAL,
        "last, planned": {"temporal": "last", "plan": None},
        "last, by relation": {"temporal": "last", "fanouts": BY_RELATION},
        "last, one hop": {"temporal": "last", "fanouts": [2]},
        "uniform, seed=7": {"temporal": "uniform", "seed": 7},
        "uniform, ahead=0": {"temporal": "uniform", "ahead": 0},
        "uniform, authors": {"temporal": "uniform", "seeds": np.arange(0, 160, 3), "input": "author"},
        "uniform, times of seeds": {
            "temporal": "uniform",
            "seeds": np.array([200, 200, 181]),
            "input_time": np.array([3, 50, 50]),
        },
        "uniform, cache": {"temporal": "uniform", "cache": 0.2, **RANK},
        "uniform, no ids": {"temporal": "uniform", "edge_ids": False},
        **{name: {"temporal": "last", **of_rank} for name, of_rank in ranks(2).items()},
    },
    ("typed times of vertices", "loader"): TEMPORAL,
    ("typed times of edges", "loader"): {
        name: {**options, "seeds": np.arange(180, 240), "input_time": np.arange(60)}
        for name, options in TEMPORAL.items()
    },
    ("plain links", "link_loader"): {**LINKS, **LINKS_OF, "scheduled": {"scheduled": True}},
    ("plain links directed", "link_loader"): LINKS,
    ("plain links symmetric", "link_loader"): LINKS,
    ("plain links temporal", "link_loader"): {
        **grid(temporal=("uniform", "last"), negatives=("uniform", "batch"), num_negatives=(1, 3)),
        "last, pairs": {
            "temporal": "last",
            "seeds": np.array([[1, 250], [3, 170], [1, 250]]),
            "input_time": np.array([20, 60, 70]),
        },
        **{name: {"temporal": "uniform", **of_rank} for name, of_rank in ranks(2).items()},
    },
    ("typed links", "link_loader"): {
        **{
            f"{relation}, {name}": {"relation": relation, **options}
            for relation in ("cites", "writes", "has_topic")
            for name, options in grid(negatives=("uniform", "batch", "local"), num_negatives=(2,)).items()
        },
        **{
            f"cites, {name}": {"relation": "cites", **options}
            for name, options in LINKS_OF.items()
            if name not in ("merged", "pairs")
        },
        "writes, by relation": {"relation": "writes", "fanouts": BY_RELATION},
    },
    ("typed links temporal", "link_loader"): {
        f"{relation}, {name}": {"relation": relation, **options}
        for relation in ("cites", "writes")
        for name, options in grid(temporal=("uniform", "last"), negatives=("uniform", "batch")).items()
    },
}
"""Options of loaders by name, by directory and kind of loader."""

CASES = {
    ", ".join(filter(None, (graph, *(["links"] if "link" in kind and "link" not in graph else []), name))): (
        graph,
        kind,
        options,
    )
    for (graph, kind), group in GROUPS.items()
    for name, options in group.items()
}
"""Directory, kind of loader and options, by the name of the entry."""


def found(name):
    """Return the entry of a name."""
    graph, kind, options = CASES[name]
    stored, options = directory(graph), dict(options)
    given = {"fanouts": [4, 3], "batch_size": 40, **options}
    if number := given.pop("num_negatives", None):
        given["negatives"] = {given["negatives"]: number}
    seeds = given.pop("seeds", "train")
    if given.get("sampling") == "weighted":
        records = stored.parts[0]._manifest["m"]
        given["weights"] = np.random.default_rng(2).integers(1, 9, records)
    with tempfile.TemporaryDirectory() as folder:
        if "plan" in given:
            given["plan"] = _planned(stored, Path(folder) / "plan", given)
        loader = getattr(stored, kind)(seeds, **given)
        epochs = [list(loader) for _ in range(2)]
        counts = loader.read_counts()
        loader.close()
    # How many bytes are read for a row depends on the blocks of the file system.
    counts = {name: count for name, count in sorted(counts.items()) if "read_bytes" not in name}
    return digest_of({"steps": len(loader), "epochs": epochs, "counts": counts})


def _planned(stored, folder, given):
    """Pack the first of two epochs. The second is packed when it begins."""
    planned = {name: given[name] for name in ("fanouts", "batch_size", "temporal") if name in given}
    workers = given.get("world_size", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "SECONDS", 0.01)  # how long the disk is measured
        return stored.plan(1, **planned, workers=workers, memory=given["plan"], pack=folder)
