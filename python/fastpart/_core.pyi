"""The compiled core. Its functions believe what the package's modules have checked; use those."""

import os
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .parameters import RunOptions

__version__: str
MAX_PARTS: int

_Ids = npt.NDArray[np.int64]
_Path = str | os.PathLike[str]

@final
class EdgeSource:
    @staticmethod
    def open(
        path: _Path,
        *,
        dtype: str | None,
        layout: str | None,
        io: str,
        num_vertices: int | None,
        max_vertices: int | None,
        options: RunOptions,
    ) -> EdgeSource: ...
    @staticmethod
    def columns(
        sources: npt.NDArray[Any],
        targets: npt.NDArray[Any],
        *,
        num_vertices: int | None,
        max_vertices: int | None,
        options: RunOptions,
    ) -> EdgeSource: ...
    @property
    def num_vertices(self) -> int: ...
    @property
    def num_edges(self) -> int: ...
    @property
    def dtype(self) -> str | None: ...
    def check_unchanged(self) -> None: ...
    def identify(self, options: RunOptions) -> tuple[int, str]: ...
    def degrees(self, options: RunOptions) -> tuple[npt.NDArray[np.uint32], int, str]: ...

@final
class Planted:
    def __new__(cls, *, n: int, m: int, classes: int, features: int, seed: int) -> Planted: ...
    def labels(self, options: RunOptions) -> _Ids: ...
    def split(self, options: RunOptions) -> tuple[_Ids, _Ids, _Ids]: ...
    def write_features(self, target: _Path, options: RunOptions) -> None: ...
    def write(self, target: _Path, options: RunOptions) -> str: ...

@final
class AtomicDir:
    def __new__(cls, target: _Path, ours: str) -> AtomicDir: ...
    @property
    def path(self) -> str: ...
    def commit(self) -> None: ...
    def discard(self) -> None: ...

def default_threads() -> int: ...
def spring(
    edges: EdgeSource,
    *,
    k: int,
    balance: float,
    balance_on: npt.NDArray[np.uint32] | None,
    balance_on_ratio: float,
    passes: int,
    batch: int | None,
    strict: bool,
    degrees: npt.NDArray[np.uint32] | None,
    options: RunOptions,
) -> dict[str, Any]: ...
def count_vertex_partition(
    edges: EdgeSource, assignment: npt.NDArray[np.int32], k: int, options: RunOptions
) -> dict[str, Any]: ...
def count_edge_partition(
    edges: EdgeSource, assignment: npt.NDArray[Any], k: int, options: RunOptions
) -> dict[str, Any]: ...
def sparse_cut_matrix(
    edges: EdgeSource, assignment: npt.NDArray[np.int32], k: int, options: RunOptions
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], _Ids]: ...
def split_counts(assignment: npt.NDArray[np.int32], ids: _Ids, k: int, options: RunOptions) -> _Ids: ...
def label_skew(
    assignment: npt.NDArray[np.int32], labels: _Ids, k: int, options: RunOptions
) -> npt.NDArray[np.float64]: ...
def memory_estimates(edges: EdgeSource) -> dict[str, int]: ...
def generate_rmat(target: _Path, *, n: int, m: int, seed: int, options: RunOptions) -> str: ...
def convert(
    source: _Path,
    target: _Path,
    *,
    relabel: bool,
    swap: bool,
    dtype: str | None,
    layout: str | None,
    num_vertices: int | None,
    options: RunOptions,
) -> dict[str, Any]: ...
def write_file(target: _Path, content: bytes) -> None: ...
def write_npy(target: _Path, array: npt.NDArray[Any], options: RunOptions) -> None: ...
def write_lines(target: _Path, array: npt.NDArray[Any], options: RunOptions) -> None: ...
