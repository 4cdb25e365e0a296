"""Upgrade a partition directory to the present schema."""

from __future__ import annotations

from pathlib import Path

from .. import _core
from ..core import parameters
from ..core.calls import called_well
from ..core.folders import refuse_links
from ..core.options import run_options
from ..core.outputs import Owner
from ..core.parameters import StrPath, shown
from ..errors import GraphFormatError
from ..partitions.part_files import MANIFEST
from ..partitions.partition import Partition
from ..partitions.parts import part_name
from .loading import open_partition
from .manifest import Listing, manifest_bytes, own_files
from .schemas import SCHEMA


@called_well
def upgrade(source: StrPath) -> bool:
    """Rewrite a partition directory of an earlier schema to the present one, and list its files.

    The parts of a vertex partition get their ``halo_rows.npy``. Then ``manifest.json`` is replaced, atomically, by one
    with the size and the checksum of every file. Other files are not touched. A directory whose upgrade was interrupted
    is of its old schema. Needs 20 bytes per halo vertex of one part at a time, and reads all files.

    Parameters
    ----------
    source : path
        A partition directory.

    Returns
    -------
    bool
        False if the directory already has the present schema and a list of its files. Nothing is written then.

    Raises
    ------
    GraphFormatError
        The path is not a partition directory, or the directory is damaged.
    OSError
        With path and errno. The directory is intact.

    Examples
    --------
    >>> import fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> stored = fp.VertexPartition([0, 0, 1], k=2).save(folder)
    >>> fp.store.upgrade(folder)
    False
    """
    folder = parameters.path("source", source)
    if folder.exists() and not folder.is_dir():
        raise GraphFormatError(f"{shown(folder)} is a file. Only partition directories can be upgraded")
    with Owner(folder, "source"):
        return _upgrade(folder)


def _upgrade(folder: Path) -> bool:
    partition = open_partition(folder)
    assert partition.manifest is not None
    refuse_links(folder, [MANIFEST])
    schema = partition.manifest["schema"]
    if schema >= SCHEMA and "files" in partition.manifest:
        return False
    if schema < SCHEMA:
        _write_rows(folder, partition)
    listing = Listing(folder, run_options())
    listing.add(own_files(folder))
    manifest = partition.manifest | {"schema": max(schema, SCHEMA), "files": listing.files}
    _core.write_file(folder / MANIFEST, manifest_bytes(manifest))
    return True


def _write_rows(folder: Path, partition: Partition) -> None:
    """Add the array that schema 3 has to the parts of a vertex partition. Earlier schemas do not look at it."""
    if partition.of == "edges" or "directedness" not in (partition.manifest or {}):
        return
    names = [f"{part_name(index)}/halo_rows.npy" for index in range(partition.k)]
    refuse_links(folder, names)
    files = [folder / name for name in names]
    try:
        for part, file in zip(partition.parts, files, strict=True):
            _core.write_npy(file, part.halo_rows, run_options())
    except BaseException:
        for file in files:
            file.unlink(missing_ok=True)
        raise
