"""The files that a table of a schema names: paths, globs, folders, URLs, and lists of them.

obstore lists files in object stores and on the web, with their sizes and ETags. Settings come from the environment, as
Polars takes them: AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, GOOGLE_SERVICE_ACCOUNT, AZURE_STORAGE_ACCOUNT_NAME and so on.
obstore and Polars stand on the same library and read the same names.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ....core.folders import leads_out
from ....core.parameters import one_line, regular, shown
from ....core.parameters import path as checked_path
from ....core.system import state_of
from ....errors import GraphFormatError, ParameterError

URL = re.compile(r"^(s3|s3a|gs|gcs|az|azure|abfs|abfss|adl|hf|https?|file)://")
"""What is read from an object store or the web."""

WEB = ("hf://", "http://", "https://")
"""Places whose folders cannot be listed."""

MAGIC = re.compile(r"[*?\[]")
"""What makes a path a glob."""


@dataclass(frozen=True)
class Found:
    """A file, or the folder of a Delta or Iceberg table, and what identifies it."""

    path: str
    bytes: int
    mark: str
    """The time of its last change, or its ETag. Empty for a table of snapshots, whose version says more."""
    table: str | None = None
    """Kind "delta" or "iceberg" for the folder of such a table."""


def hidden(name: str) -> bool:
    """Whether a name is one of those that Spark and others hide: ``_SUCCESS``, ``.part.crc``."""
    return name.startswith((".", "_"))


def glob_pattern(pattern: str, literal: int = 0) -> re.Pattern[str]:
    """Return a regular expression for a glob over the keys of an object store. ``*`` stays within a folder.

    The first ``literal`` characters have no special meaning.
    """
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\])", pattern[literal:])
    return re.compile(re.escape(pattern[:literal]) + "".join(map(_part, parts)) + r"\Z", re.DOTALL)


def _part(part: str) -> str:
    plain: dict[str, str] = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if part in plain:
        return plain[part]
    if len(part) > 2 and part[0] == "[" and part[-1] == "]":
        inner = part[1:-1].replace("\\", r"\\")
        return f"[^{inner[1:]}]" if inner[0] == "!" else f"[{inner}]"
    return re.escape(part)


def partitions_of(path: str) -> dict[str, str | None]:
    """Return what the folders of a path say, as ``day=1``: columns that all rows of the file share."""
    pairs: Sequence[tuple[str, str]] = re.findall(r"(?:^|/)([^/=]+)=([^/]*)(?=/)", path)
    return {
        unquote(name): None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
        for name, value in pairs
    }


def needed(module: str, extra: str, what: str) -> Any:
    """Import a module of an extra, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise ParameterError(f"{what} needs {module}: pip install 'fastpart[{extra}]'") from None


def find_in_store(name: str, url: str) -> list[Found]:
    """Return the files that a URL names: one, those of a folder, or those that match a glob."""
    if url.startswith("hf://"):
        return [Found(url, 0, "")]  # Polars alone can list these
    base, key = _store_and_key(url)
    with _naming(f"{name}.files", url):
        if MAGIC.search(key):
            found = _matching(base, key)
        elif key and not key.endswith("/") and (file := _head(base, key)):
            return [file]
        else:
            found = [] if url.startswith(WEB) else _folder_in_store(base, key.rstrip("/"))
    if not found:
        what = "no file matches the glob" if MAGIC.search(key) else "no such file or folder"
        raise FileNotFoundError(2, f"{name}.files: {what}", url)
    return found


def current_in_store(found: Found) -> Found | None:
    """Return what a file is now. None if it is gone."""
    with _naming("files", found.path):
        return _head(*_store_and_key(found.path))


def _store_and_key(url: str) -> tuple[str, str]:
    """Return the store of a URL, and the key within it."""
    scheme, _, rest = url.partition("://")
    store, _, key = rest.partition("/")
    return f"{scheme}://{store}", key


@lru_cache(16)
def _store(base: str) -> Any:
    needed("obstore", "cloud", f"{base}: an object store")
    plain = base.startswith("http://")
    from_url = import_module("obstore.store").from_url
    return from_url(base, client_options={"allow_http": True}) if plain else from_url(base)


def _head(base: str, key: str) -> Found | None:
    store = _store(base)
    try:
        return _found(base, import_module("obstore").head(store, key))
    except FileNotFoundError:
        return None


def _listed(base: str, prefix: str) -> Iterator[Found]:
    store = _store(base)
    for page in import_module("obstore").list(store, prefix=prefix or None):
        for entry in page:
            if entry["size"] or not entry["path"].endswith("/"):
                yield _found(base, entry)


def _found(base: str, entry: Mapping[str, Any]) -> Found:
    mark = entry["e_tag"] or str(entry["last_modified"])
    return Found(f"{base}/{entry['path']}", entry["size"], mark.strip('"'))


def _matching(base: str, key: str) -> list[Found]:
    matching = glob_pattern(f"{base}/{key}", len(base) + 1)
    magic = MAGIC.search(key)
    before = key[: magic.start() if magic else None].rpartition("/")[0]
    return [each for each in _listed(base, before) if matching.match(each.path)]


def _folder_in_store(base: str, key: str) -> list[Found]:
    """Return the files below a folder, or the folder itself if it is a Delta or an Iceberg table."""
    folder = f"{base}/{key}".rstrip("/")
    found = []
    for each in _listed(base, key):
        names = each.path.removeprefix(folder + "/").split("/")
        if names[0] == "_delta_log":
            return [Found(folder, 0, "", "delta")]
        if names[0] == "metadata" and names[-1].endswith(".metadata.json"):
            return [Found(folder, 0, "", "iceberg")]
        if not any(map(hidden, names)):
            found.append(each)
    return found


@contextmanager
def _naming(name: str, url: str) -> Iterator[None]:
    """Turn errors of the store into those of the system, with the URL."""
    base = needed("obstore.exceptions", "cloud", f"{shown(url)}: an object store").BaseError
    try:
        yield
    except base as error:
        text, kind = str(error), type(error).__name__
        if "NoSuchBucket" in text:
            raise FileNotFoundError(2, f"{name}: no such bucket", url) from None
        reason = one_line(text.partition("\n")[0], 200)
        if kind in ("PermissionDeniedError", "UnauthenticatedError"):
            raise PermissionError(13, f"{name}: access denied", url) from None
        raise OSError(f"{name}: {shown(url)}: {reason}") from None


def find(name: str, files: Any, root: str) -> list[Found]:
    """Return the files of the table ``name``, sorted by the bytes of their paths, each once.

    Raises
    ------
    FileNotFoundError
        A path, a glob or a folder without a file.
    GraphFormatError
        A link that leads out of the folder of a table, or of the folder where a glob begins.
    """
    patterns = _patterns(name, files)
    if not patterns:
        raise GraphFormatError(f"{name}.files: the list is empty. Name a file, or leave `files` out")
    found = {each.path: each for pattern in patterns for each in _matches(name, joined(root, pattern))}
    return [found[path] for path in sorted(found, key=os.fsencode)]


def joined(root: str, path: str) -> str:
    """Return a path, which begins at ``root`` unless it is absolute or a URL."""
    path = os.path.expanduser(path.removeprefix("file://"))
    if URL.match(path) or os.path.isabs(path):
        return path
    return (
        f"{root.rstrip('/')}/{path}"
        if URL.match(root)
        else os.path.normpath(os.path.join(root, path)) + ("/" if path.endswith("/") else "")
    )


def _patterns(name: str, files: Any) -> list[str]:
    if isinstance(files, str | bytes | os.PathLike):
        files = [files]
    if not isinstance(files, Iterable):
        raise TypeError(
            f"{name}.files: expected a path, a glob, a folder, a URL, a list of them, or a data frame, "
            f"got {type(files).__name__}"
        )
    # pathlib would make one slash of the two of a URL.
    return [each if isinstance(each, str) and URL.match(each) else _text(name, each) for each in files]


def _text(name: str, value: object) -> str:
    slash = "/" if isinstance(value, str) and value.endswith("/") else ""
    return os.fspath(checked_path(f"{name}.files", value)) + slash


def _matches(name: str, pattern: str) -> list[Found]:
    if URL.match(pattern):
        return find_in_store(name, pattern)
    if os.path.isfile(pattern):
        return [_file(pattern)]
    if os.path.isdir(pattern):
        folder = pattern.rstrip("/") or "/"
        return _folder(name, folder, folder)
    regular(Path(pattern))
    if not (magic := MAGIC.search(pattern)):
        raise FileNotFoundError(2, f"{name}.files: no such file or folder", pattern)
    found: list[Found] = []
    root = os.path.dirname(pattern[: magic.start()]) or "."
    for path in glob.glob(pattern, recursive=True):
        _refuse_outside(name, path, root)
        if not os.path.isdir(path):
            found.append(_file(path))
        elif not pattern.endswith("**"):  # which matches the folders and all that is in them
            found += _folder(name, path, root)
    if not found:
        raise FileNotFoundError(2, f"{name}.files: no file matches the glob", pattern)
    return found


def _folder(name: str, folder: str, root: str) -> list[Found]:
    """Return the files below a folder, without those that other systems hide from readers. Links stay in the root."""
    if kind := table_kind(folder, (entry.name for entry in os.scandir(folder))):
        return [Found(folder, 0, "", kind)]
    found: list[Found] = []
    seen: set[str] = set()
    for here, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(here)
        folders[:] = [] if real in seen else [each for each in folders if not hidden(each)]
        if real in seen:  # by a link
            continue
        seen.add(real)
        paths = [os.path.join(here, each) for each in files if not hidden(each)]
        for path in (*paths, *(os.path.join(here, each) for each in folders)):
            if os.path.islink(path):
                _refuse_outside(name, path, root)
        found += map(_file, paths)
    if not found:
        raise FileNotFoundError(2, f"{name}.files: no file in the folder", folder)
    return found


def _refuse_outside(name: str, path: str, root: str) -> None:
    """Refuse a path below a folder that leads out of it: a table is what lies in its folder."""
    if leads_out(path, root):
        raise GraphFormatError(
            f"{name}.files: {shown(path)} leads out of {shown(root)} by a link. Put a copy in its place, or remove the "
            "link and name in `files` what it leads to"
        )


def table_kind(folder: str, names: Iterable[str]) -> str | None:
    """Return "delta" or "iceberg" if a folder with these names is such a table."""
    names = set(names)
    if "_delta_log" in names:
        return "delta"
    if "metadata" in names and any(
        each.name.endswith(".metadata.json") for each in Path(folder, "metadata").glob("*.json")
    ):
        return "iceberg"
    return None


def _file(path: str) -> Found:
    size, *rest = state_of(regular(Path(path)), changes=True)
    return Found(path, int(size), " ".join(map(str, rest)))


def unchanged(found: Found) -> bool:
    """Whether a file is still the one that was found. True for what has no time and no ETag."""
    if found.table is not None or not found.mark:
        return True
    if URL.match(found.path):
        return current_in_store(found) == found
    try:
        return _file(found.path) == found
    except (OSError, GraphFormatError):
        return False
