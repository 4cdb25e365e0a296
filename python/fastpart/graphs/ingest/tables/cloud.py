"""Files in object stores and on the web, listed by obstore with their sizes and ETags.

Settings come from the environment, as Polars takes them: AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, GOOGLE_SERVICE_ACCOUNT,
AZURE_STORAGE_ACCOUNT_NAME and so on. obstore and Polars stand on the same library and read the same names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

from ....core.parameters import one_line, shown
from ....errors import ParameterError
from .paths import MAGIC, WEB, Found, glob_pattern, hidden


def needed(module: str, extra: str, what: str) -> Any:
    """Import a module of an extra, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise ParameterError(f"{what} needs {module}: pip install 'fastpart[{extra}]'") from None


def find(name: str, url: str) -> list[Found]:
    """Return the files that a URL names: one, those of a folder, or those that match a glob."""
    if url.startswith("hf://"):
        return [Found(url, 0, "")]  # Polars alone can list these
    base, key = split(url)
    with told(f"{name}.files", url):
        if MAGIC.search(key):
            found = _matching(base, key)
        elif key and not key.endswith("/") and (file := _head(base, key)):
            return [file]
        else:
            found = [] if url.startswith(WEB) else _folder(base, key.rstrip("/"))
    if not found:
        what = "no file matches the glob" if MAGIC.search(key) else "no such file or folder"
        raise FileNotFoundError(2, f"{name}.files: {what}", url)
    return found


def current(found: Found) -> Found | None:
    """Return what a file is now. None if it is gone."""
    with told("files", found.path):
        return _head(*split(found.path))


def split(url: str) -> tuple[str, str]:
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


def _folder(base: str, key: str) -> list[Found]:
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
def told(name: str, url: str) -> Iterator[None]:
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
