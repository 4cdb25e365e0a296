"""The folder of a training, the list of what fastpart wrote there, and its files of weights.

``fastpart-run.json`` lists the entries of the folder that belong to the training. Nothing else in it is ever changed or
removed. It also says what was trained, so that the training can be opened and continued, and has size and checksum of
the checkpoint. Folders of versions without that file own the names that these versions wrote.

Files of weights have tensors, numbers and text, of which nothing is executed.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from ... import _core
from ...core import parameters
from ...core.folders import links, refuse_links
from ...core.parameters import StrPath, shown
from ...core.parsing import Count, PathBelow, checked_object, json_object
from ...errors import GraphFormatError, ParameterError, arg
from ...store.saving import refuse_unwritable
from ..data.learned_rows import EMBEDDINGS
from .identity import earlier

Weights = dict[str, Tensor]


def load_weights(file: StrPath) -> dict[str, Any]:
    """Load a ``.pt`` of tensors, numbers and text. Nothing in it is executed."""
    path = parameters.regular(parameters.path("file", file))
    return weights_in(path.read_bytes(), path)


def weights_in(content: bytes, file: Path) -> dict[str, Any]:
    """Return what the content of a ``.pt`` holds. Errors name the file."""
    try:
        loaded = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # torch may raise anything on damaged bytes
        raise GraphFormatError(f"{shown(file)}: holds no weights ({error})") from None
    if not isinstance(loaded, dict):
        raise GraphFormatError(f"{shown(file)}: holds no weights")
    return loaded


def content_of(saved: Mapping[str, Any]) -> bytes:
    """Return the content of a ``.pt``."""
    buffer = io.BytesIO()
    torch.save(saved, buffer)
    return buffer.getvalue()


def refuse_other_shapes(network: nn.Module, weights: Mapping[str, Tensor], run: Path) -> None:
    """Refuse a model that cannot take the weights of a training, and name the tensor."""
    there = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    kept = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in {**there, **kept}:
        if there.get(name) != kept.get(name):
            mine, theirs = (
                "is missing" if shape is None else f"has the shape {shape}"
                for shape in (there.get(name), kept.get(name))
            )
            raise ParameterError(
                f"model: it is not the one that was trained. Its tensor {name!r} {mine}, but in {shown(run)} it "
                f"{theirs}"
            )


MARKER = "fastpart-run.json"
"""The list of the entries, and what was trained."""

CHECKPOINT, BEST, TABLE, MODEL = "checkpoint.pt", "best.pt", "history.parquet", "model.py"

SCRATCH = "scratch/"
"""Temporary files of the workers of several machines, which have no other folder in common."""

RAY = "ray/"
"""What Ray Train notes about its workers."""

_EARLIER = (
    CHECKPOINT,
    BEST,
    TABLE,
    MODEL,
    EMBEDDINGS,
    "history.svg",
    "embeddings/epoch-*/part-*.npy",
    "parts-[0-9]*",
)
"""Files that versions without the list wrote."""


_UNFINISHED = f".{MARKER}.tmp-"
"""Prefix of a file that a kill leaves of the first list. The next call that writes the list removes it."""

UNKNOWN = "unknown"
"""Recorded origin of parts that these versions made."""


_REMEDY = "Restore the file, or choose another folder"


class _MustAgree(msgspec.Struct):
    method: str
    data: dict[str, dict[str, Any] | int]  # earlier trainings over an export to DGL noted a number
    options: dict[str, Any]
    how: dict[str, Any]


class _MayChange(msgspec.Struct):
    source: str
    arguments: dict[str, Any]


class _Content(msgspec.Struct):
    """The fields of the list. Those of a training are there once it has begun, or ended."""

    fastpart: str
    files: list[PathBelow] = []
    checksums: dict[str, list[tuple[Count, str]]] = {}
    parts: dict[str, str] = {}
    must_agree: _MustAgree | msgspec.UnsetType = msgspec.UNSET
    may_change: _MayChange | msgspec.UnsetType = msgspec.UNSET
    options: dict[str, Any] = {}
    task: dict[str, Any] | None = None
    summary: dict[str, Any] | None = None


class RunFolder:
    """The folder of a training.

    Attributes
    ----------
    path : pathlib.Path
        The folder.
    content : dict
        The entries of its list. Empty if there is none.
    temporary : bool
        Whether it is removed after the training.
    """

    def __init__(self, path: Path, temporary: bool = False) -> None:
        self.path, self.temporary = path, temporary
        self.content = _read(path)

    @classmethod
    def claim(cls, out: StrPath, resume: bool, overwrite: bool) -> RunFolder:
        """Return the folder for a training, before any work.

        Raises
        ------
        ParameterError
            It holds files that are not of fastpart, or a training that is neither resumed nor overwritten.
        """
        path = parameters.path("out", out)
        if resume and overwrite:
            raise ParameterError(
                f"overwrite: {arg('resume', True)} goes on with the training that it would remove. Pass one of them"
            )
        if os.path.lexists(path) and not path.is_dir():
            raise ParameterError(f"out: {shown(path)} is not a directory")
        path.mkdir(exist_ok=True)
        refuse_links(path, [MARKER])
        folder = cls(path)
        if not folder.content and not all(each.name.startswith(_UNFINISHED) for each in path.iterdir()):
            folder._adopt(resume)
        folder._refuse_links()
        if folder.has_checkpoint and not resume:
            if not overwrite:
                raise ParameterError(
                    f"out: {shown(path)} holds a training. Pass {arg('resume', True)} to go on with it, "
                    f"{arg('overwrite', True)} to replace it, or choose another folder"
                )
            folder.clear()
        return folder

    def _refuse_links(self) -> None:
        """Refuse links in place of the entries of the training, which would be written through."""
        refuse_links(self.path, self.files)
        for name in self.files:
            if name.endswith("/") and name not in (SCRATCH, RAY) and (self.path / name).is_dir():
                refuse_links(self.path / name, links(self.path / name))

    def _adopt(self, resume: bool) -> None:
        """Take over the folder of a version without the list. Refuse any other that is not empty."""
        file = self.path / CHECKPOINT
        try:
            known = file.is_file() and {"identity", "rows", "state"} <= set(
                weights_in(file.read_bytes(), file)
            )
        except GraphFormatError:
            if resume:
                raise
            known = False
        if not known:
            first = min(each.name for each in self.path.iterdir())
            raise ParameterError(
                f"out: {shown(self.path)} is not empty, but holds no training of fastpart ({shown(first)} is there). "
                "Choose another folder"
            )
        there = [each for pattern in _EARLIER for each in sorted(self.path.glob(pattern))]
        identity = weights_in(file.read_bytes(), file)["identity"]
        self.content = {
            "files": [f"{each.relative_to(self.path).as_posix()}{'/' * each.is_dir()}" for each in there],
            "must_agree": earlier(identity),
            "parts": {each.name: UNKNOWN for each in there if each.is_dir()},
        }

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is a training to go on with."""
        return (self.path / CHECKPOINT).exists()

    @property
    def files(self) -> list[str]:
        """The entries that belong to the training, by their path in the folder. Names of folders end with a slash."""
        return list(self.content.get("files", []))

    def begin(self, going_on: bool, **values: Any) -> None:
        """Begin a training or go on with one, and note what it is."""
        self.add([CHECKPOINT, BEST, TABLE])
        self.update(**({} if going_on else {"checksums": {}}), **values, summary=None)

    def add(self, names: Iterable[str]) -> None:
        """Add entries before they are written. Refuse those that are there already and not of the training."""
        new = [name for name in names if name not in self.files]
        for name in new:
            if os.path.lexists(self.path / name):
                raise ParameterError(
                    f"out: {shown(self.path / name)} was not written by this training. Move it away, or choose another "
                    "folder"
                )
        if new:
            self.update(files=[*self.files, *new])

    def update(self, **values: Any) -> None:
        """Change some of the list's values. It is written as a whole."""
        # What another process of the training wrote meanwhile stays.
        self.content = {"fastpart": _core.__version__, **self.content, **_read(self.path), **values}
        _core.write_file(self.path / MARKER, json.dumps(self.content, indent=1).encode())

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Write files with checksums, each atomically.

        The list gets the new checksums first, and keeps those of the files that are there. So a kill at any moment
        leaves files that it knows.
        """
        sums = self.content.get("checksums", {})
        new = {name: _hash(content) for name, content in contents.items()}
        self.update(checksums={**sums, **{name: [*sums.get(name, [])[-1:], new[name]] for name in new}})
        for name, content in contents.items():
            _core.write_file(self.path / name, content)

    def read(self, name: str) -> bytes:
        """Return the content of a file that :meth:`write` wrote.

        Raises
        ------
        GraphFormatError
            Its bytes are not those that were written.
        """
        file = parameters.regular(self.path / name)
        content = file.read_bytes()
        sums = self.content.get("checksums", {})
        if name in sums:
            found = _hash(content)
            if found not in sums[name]:
                raise GraphFormatError(
                    f"{shown(file)}: damaged. Its size or checksum is not that in {MARKER}. Restore the file, or train "
                    f"anew with {arg('overwrite', True)}"
                )
            sums[name] = [found]  # the other one was never written
        return content

    def clear(self) -> None:
        """Remove the entries of the training, and the list."""
        for name in self.files:
            if name.endswith("/") and name not in (SCRATCH, RAY) and (self.path / name).is_dir():
                refuse_unwritable(self.path / name, "directory", None)
        for name in [*self.files, MARKER]:
            _remove(self.path, name)
        self.content = {}

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Say in an error where the training so far is."""
        try:
            yield
        except Exception as error:
            if self.has_checkpoint and not self.temporary:
                error.add_note(
                    f"The training so far is in {shown(self.path)}. resume=True goes on with it, and "
                    "fastpart.train.open returns its weights"
                )
            raise

    @contextmanager
    def without(self, *names: str) -> Iterator[None]:
        """Remove entries of the training in the end."""
        try:
            yield
        finally:
            for name in names:
                _remove(self.path, name)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a folder for temporary files in this one. It is empty, and removed in the end."""
        _remove(self.path, SCRATCH) if SCRATCH in self.files else self.add([SCRATCH])
        folder = self.path.absolute() / SCRATCH
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _read(path: Path) -> dict[str, Any]:
    """Return the list of a folder, empty if there is none of fastpart."""
    file = path / MARKER
    if not os.path.lexists(file):
        return {}
    content = json_object(file, None, None, _REMEDY)
    if "fastpart" not in content:
        return {}
    return checked_object(file, content, _Content, _REMEDY)


def _hash(content: bytes) -> list[Any]:
    """Return size and checksum, as JSON has them."""
    return [len(content), _core.hash_bytes(content)]


def _remove(folder: Path, name: str) -> None:
    """Remove an entry, and the folders that it was in if nothing else is there."""
    path = folder / name
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    for parent in path.relative_to(folder).parents[:-1]:
        try:
            (folder / parent).rmdir()
        except OSError:
            return
