"""What is taken out of files and of output before their digests. Nothing else is.

- The version of fastpart, wherever text has it, and versions of libraries.
- The folder of the run.
- Baselines of trainings, which a busy machine may leave out.
- Dates, times that were measured, memory that was measured, and facts about the machine and its file systems.
- Checksums and sizes of files that themselves hold something of this list, or that Polars wrote in its own way.
- Numbers that kernels of torch computed: of these, names, dtypes and shapes stay.
- The order of what a file of torch holds by name, and which settings its optimizers have.
"""

import io
import json
import pickle

import numpy as np
import polars as pl

import fastpart as fp

from .digests import digest, digest_of
from .graphs import root

TIMES = {"date", "seconds_per_epoch", "edges_per_s", "idle_share"}
MEMORY = {"worker_bytes", "peak_bytes", "bytes_per_vertex"}
MACHINE = {"machine", "disk", "versions", "build"}
BASELINES = {"baselines"}
SUMS = {"manifest_xxh3", "checksums"}
VARYING = TIMES | MEMORY | MACHINE | BASELINES | SUMS
"""Names whose values are taken out, beside all that end with seconds."""


def stable(content, folder="\0", trained=False):
    """Return JSON without what varies. With ``trained``, all fractions are left out, since torch computes them."""
    if isinstance(content, dict):
        return {
            stable_text(name, folder): "varies"
            if _varies(name, value, content)
            else stable(value, folder, trained)
            for name, value in content.items()
        }
    if isinstance(content, list):
        return [stable(each, folder, trained) for each in content]
    if isinstance(content, str):
        return stable_text(content, folder)
    return "number" if trained and isinstance(content, float) else content


def _varies(name, value, content):
    """Return whether a value of a mapping differs between runs, machines and versions."""
    if name == "bytes":  # of a whole directory with its manifest, or of an input, which may be a folder
        return "files" in content or "path" in content
    if name == "grem" or (name == "memory" and content.get("adjacency") == "files"):
        return True  # temporary files count as memory where their file system is in memory
    if name == "seconds" and isinstance(
        value, dict
    ):  # by the rates that a user may have, not by those measured
        return False
    if name == "xxh3":  # of the object itself, which has the version
        return "fastpart" in content
    return _is_measured(name) or (name.endswith((".parquet", ".toml")) and "xxh3" in value)


def _is_measured(name):
    return name in VARYING or name.endswith("seconds")


def stable_text(text, folder="\0"):
    """Return text without the version and the folder of the run."""
    text = text.replace(str(folder), "FOLDER").replace(str(root()), "FOLDER")
    return text.replace(fp.__version__, "VERSION")


def digests_of_json(content):
    """Return a digest for each value of an object, by its name."""
    named = content if isinstance(content, dict) else {"rows": content}
    return {name: digest(json.dumps(value).encode())[:12] for name, value in named.items()}


def digest_of_file(file, folder, trained=False):
    """Return the digest of what a file holds. Of JSON, return one for each value by its name."""
    content = file.read_bytes()
    match file.suffix:
        case ".json":
            return digests_of_json(stable(json.loads(content), folder, trained))
        case ".jsonl":
            rows = [stable(json.loads(line), folder, trained) for line in content.splitlines()]
            return digest(json.dumps(rows).encode())
        case ".parquet":
            return digest_of(_table(pl.read_parquet(io.BytesIO(content)), folder, trained))
        case ".csv":
            return digest_of(_table(pl.read_csv(io.BytesIO(content)), folder, trained))
        case ".npy" if trained:
            return digest_of(_shapes(np.load(io.BytesIO(content))))
        case ".npz":
            with np.load(io.BytesIO(content)) as arrays:
                return digest_of({name: arrays[name] for name in arrays.files})
        case ".pkl":
            return digest_of(pickle.loads(content))
        case ".pt":
            import torch

            loaded = torch.load(io.BytesIO(content), weights_only=False)
            return digest_of(_shapes(loaded) if trained else _ordered(loaded))
        case ".toml" | ".yaml" | ".txt":
            return digest(stable_text(content.decode(), folder).encode())
    return digest(content)


def _table(frame, folder, trained):
    """Return names, dtypes and values of the columns of a frame."""
    columns = stable(frame.to_dict(as_series=False), folder, trained)
    return {
        name: [str(frame.schema[name]), "varies" if _is_measured(name) else values]
        for name, values in columns.items()
    }


def _ordered(loaded):
    """Return what a file of torch holds, sorted by name."""
    if isinstance(loaded, dict):
        return {str(name): _ordered(loaded[name]) for name in sorted(loaded, key=str)}
    return loaded


def _shapes(loaded):
    """Return what a checkpoint holds, with dtypes and shapes for its tensors and types for its numbers."""
    if isinstance(loaded, dict):
        return {
            str(name): "varies" if name == "param_groups" else _shapes(value)
            for name, value in loaded.items()
        }
    if isinstance(loaded, list | tuple):
        return [_shapes(each) for each in loaded]
    if hasattr(loaded, "shape"):
        return [str(loaded.dtype), list(loaded.shape)]
    return type(loaded).__name__
