"""The data, model and parameters that must agree when a training is resumed. The rest may change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ... import _core
from ...core.options import RunOptions
from ...core.parameters import regular, shown
from ...errors import GraphFormatError, ParameterError, arg
from ...store.manifest import CATEGORIES, ROWS, checksums_of, digest, files_of
from ..options import Options
from ..plugged import ModelSource, name_of

MAY_CHANGE = frozenset({"epochs", "patience", "eval_every", "metrics"})
"""Options that a resume may change. Where batches wait and rows lie is no option: it changes no loss."""


def must_agree(
    method: str, options: Options, how: Mapping[str, Any], data: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what must agree. ``how`` has the parameters of the method, ``data`` is what :func:`data_of` returns."""
    found = {
        "method": method,
        "data": data,
        "options": {**_kept(options.stored()), "model": model_name(options.model)},
        "how": _kept(how),
    }
    compared: dict[str, Any] = json.loads(json.dumps(found))  # tuples are lists, as in the file
    return compared


def _kept(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in MAY_CHANGE}


def model_name(model: ModelSource) -> str:
    """Return the name of a model. Its file may move."""
    if isinstance(model, str):
        return model.rpartition(":")[2]
    return name_of(model)


def data_of(path: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return checksums of what a training reads of a partition directory: edges, parts, rows and splits."""
    data: dict[str, Any] = {"graph": {name: manifest.get(name) for name in ("checksum", "n", "directedness")}}
    listed = checksums_of(manifest)
    for what, names in files_of(manifest).items():
        data[what] = {"xxh3": listed[what] if listed else digest(_hashed(path, names))}
    for what in ROWS:
        data[what] = {"type": manifest.get(what)} | ({"xxh3": listed[what]} if listed else {})
    if known := [each[CATEGORIES] for each in (manifest, *manifest.get("types", ())) if CATEGORIES in each]:
        data[CATEGORIES] = {"blake2b": digest({CATEGORIES: known})}
    return data


def _hashed(path: Path, names: Iterable[str]) -> dict[str, Any]:
    files = [file for name in names for file in path.glob(f"part-*/{name}")]
    hashes = _core.hash_files([regular(file) for file in files], RunOptions())
    return {file.relative_to(path).as_posix(): list(found) for file, found in zip(files, hashes, strict=True)}


def earlier(identity: str) -> dict[str, Any]:
    """Return what a checkpoint of a version without ``fastpart-run.json`` knows of what must agree."""
    try:
        method, checksum, n, options, how = json.loads(identity)
        options = json.loads(options)
        return {
            "method": method,
            "data": {"graph": {"checksum": checksum, "n": n}},
            "options": {**_kept(options), "model": model_name(options["model"])},
            "how": how or {},
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        raise GraphFormatError("checkpoint.pt: not a checkpoint of fastpart") from None


def refuse_difference(run: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with a training that differs in what must agree. Only what both know is compared."""
    anew = f"Train anew with {arg('overwrite', True)}, or choose another folder"
    if then.get("method") != now["method"]:
        raise ParameterError(
            f"resume: {shown(run)} was trained with {then.get('method')}, not {now['method']}. {anew}"
        )
    for what, known in now["data"].items():
        before = then.get("data", {}).get(what, {})
        if any(before[name] != known[name] for name in before.keys() & known.keys()):
            raise ParameterError(
                f"resume: {shown(run)} was trained on other {what.replace('_', ' ')}. {anew}"
            )
    for group in ("options", "how"):
        before = then.get(group, {})
        for name in sorted(before.keys() & now[group].keys()):
            if before[name] != now[group][name]:
                if name == "workers":
                    raise ParameterError(
                        f"resume: {shown(run)} was trained by {before[name]} workers, not {now[group][name]}. Their "
                        f"number decides about its batches. Start as many. {anew}"
                    )
                raise ParameterError(
                    f"resume: {shown(run)} was trained with {name} = {before[name]!r}, not {now[group][name]!r}. "
                    f"Pass the same. {anew}"
                )
