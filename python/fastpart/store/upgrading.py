"""Upgrade a partition directory to the present schema."""

from __future__ import annotations

from .. import _core, parameters
from ..errors import GraphFormatError
from ..parameters import StrPath, shown
from ..parts import MANIFEST
from .directory import as_json
from .loading import open_partition, read_manifest
from .schemas import SCHEMA


def upgrade(source: StrPath) -> bool:
    """Rewrite a partition directory of an earlier schema to the present one.

    Only ``manifest.json`` changes, atomically. Arrays are not touched.

    Parameters
    ----------
    source : path
        A partition directory.

    Returns
    -------
    bool
        False if the directory already has the present schema. Nothing is written then.

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
    >>> fp.VertexPartition([0, 0, 1], k=2).save(folder)
    >>> fp.store.upgrade(folder)
    False
    """
    folder = parameters.path("source", source)
    if folder.exists() and not folder.is_dir():
        raise GraphFormatError(f"{shown(folder)} is a file. Only partition directories can be upgraded")
    partition = open_partition(folder)
    assert partition.manifest is not None
    if read_manifest(folder)["schema"] == SCHEMA:
        return False
    _core.write_file(folder / MANIFEST, as_json(partition.manifest, indent=1))
    return True
