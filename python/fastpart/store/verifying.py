"""Compare the files of a partition directory with the sizes and checksums in its manifest."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from .. import _core
from ..core import parameters
from ..core.folders import below, inside
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.parameters import StrPath, shown
from ..core.parsing import is_intact
from ..errors import GraphFormatError, ParameterError
from ..partitions.part_files import MANIFEST
from .manifest import OWN, Files, read_manifest, refuse_mistyped


@dataclass(frozen=True)
class Verification:
    """The result of :func:`verify` for a directory that is as it was written.

    Attributes
    ----------
    files : int
        Number of files.
    bytes : int
        Their size, without the manifest.
    foreign : tuple of str
        Files in the directory that fastpart did not write. They are not compared with anything.
    """

    files: int
    bytes: int
    foreign: tuple[str, ...]


@with_options
def verify(source: StrPath, **options: Unpack[Options]) -> Verification:
    """Compare every file of a partition directory with the size and the checksum of its writing.

    Use it after a copy to another machine, or when a disk is in doubt: a changed value in features or labels goes
    unnoticed otherwise. All files are read once, in parallel.

    Parameters
    ----------
    source : path
        A partition directory.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Verification
        Numbers of the files that were compared.

    Raises
    ------
    GraphFormatError
        Files are missing or differ. The text names each. Or the directory was written without a list of its files.
    ParameterError
        The source is no partition directory.
    OSError
        A file cannot be read, with path and errno.

    Notes
    -----
    Checksums are XXH3-128, as ``xxhsum -H2`` prints them. They notice what happens by accident. They do not protect
    against those who change a file and its checksum.

    Examples
    --------
    >>> import fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> stored = fp.VertexPartition([0, 0, 1], k=2).save(folder)
    >>> fp.store.verify(folder)
    Verification(files=2, bytes=140, foreign=())
    """
    folder = parameters.path("source", source)
    if not folder.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    if not folder.is_dir():
        raise ParameterError(f"source: {shown(folder)} is a file. Only partition directories can be verified")
    manifest = read_manifest(folder)
    if "files" not in manifest:
        raise GraphFormatError(
            f"{shown(folder)}: {MANIFEST} lists no checksums, as fastpart of earlier versions wrote it. "
            f"`fastpart upgrade {shown(folder)}` adds those of the files as they are now"
        )
    refuse_mistyped(folder / MANIFEST, {"files": manifest["files"]})
    wrong = _wrong(folder.resolve(), manifest["files"], run_options(**options))
    if wrong:
        told = ", ".join(f"{shown(name)} ({what})" for name, what in sorted(wrong.items()))
        raise GraphFormatError(
            f"{shown(folder)}: {len(wrong)} of {len(manifest['files']) + 1} files are damaged: {told}. Copy them or "
            "save the partition again"
        )
    known = {MANIFEST, *manifest["files"]}
    sizes = sum(facts["size"] for facts in manifest["files"].values())
    return Verification(len(known), sizes, tuple(name for name in below(folder) if name not in known))


def _wrong(root: Path, files: Files, run: RunOptions) -> dict[str, str]:
    """Return what is wrong with each file that is not as it was written."""
    wrong = {} if is_intact((root / MANIFEST).read_bytes(), OWN) else {MANIFEST: "differs"}
    right: list[str] = []
    for name, facts in files.items():
        try:
            size = os.stat(inside(root, name)).st_size
        except GraphFormatError as error:
            wrong[name] = "missing" if not os.path.lexists(root / name) else str(error).rpartition(": ")[2]
            continue
        if size == facts["size"]:
            right.append(name)
        else:
            wrong[name] = f"{size} bytes instead of {facts['size']}"
    found = _core.hash_files([root / name for name in right], run)
    differ = {name for name, (_, xxh3) in zip(right, found, strict=True) if xxh3 != files[name]["xxh3"]}
    return wrong | dict.fromkeys(differ, "differs")
