"""Tables with string ids, in the shape of ogbn-mag: what an ingest reads."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.folders import below
from ..core.frames import before_polars_threads, pl
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.outputs import output_folder
from ..core.pairs import hashed, mixed
from ..core.parameters import StrPath, shown
from ..errors import ParameterError

MARKER = "tables.json"
"""The file that lists what was written, with the numbers of rows."""

SCHEMA = "schema.yaml"

TYPES = {"author": 1_134_649, "field": 59_965, "institution": 8_740, "paper": 736_389}
"""Vertices of ogbn-mag."""

RELATIONS = {"affiliated": 1_043_998, "cites": 5_416_271, "has_topic": 7_505_078, "writes": 7_145_660}
"""Records of ogbn-mag."""

VENUES = 349
"""Classes of ogbn-mag."""

_LARGEST_SCALE = 200.0
"""With it all numbers of vertices stay below 2^28."""

_INSIDE = 0.8
"""Share of the records that stay within a venue."""

_SEPARATION = 2.0
"""Distance of two centroids is on average this times the square root of 2."""

_FILE_BYTES = 32 << 20
"""Bytes of the rows of a file, about."""

_ROWS = 1 << 12
"""Rows of features that are made at a time."""

_PRIME = 1_000_000_007
"""Numbers in ids are below it."""

Numbers = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

# Streams of random numbers: each property of a vertex or of a record has its own.
_PAPER, _YEAR, _NOISE, _CENTROID, _AFFILIATED, _CITES, _TOPIC, _WRITES = range(8)


@with_options
def typed(
    out: StrPath,
    *,
    scale: float = 0.001,
    features: int = 128,
    seed: int = 0,
    overwrite: bool = False,
    **options: Unpack[Options],
) -> Path:
    """Write tables of typed vertices and relations with string ids, in the shape of ogbn-mag.

    Parameters
    ----------
    out : path
        A folder. It gets ``schema.yaml``, which ``fastpart ingest`` reads, and a folder of Parquet files for each type
        (``author``, ``field``, ``institution``, ``paper``) and relation (``affiliated``, ``cites``, ``has_topic``,
        ``writes``). Papers have a ``venue`` (the label), a ``year`` (2010 to 2019) and ``emb``, a list
        of float32.
    scale : float
        Size relative to ogbn-mag, which has 1.9 million vertices and 21 million records.
    features : int
        Length of ``emb``. 0: no such column.
    seed : int, optional
        Seed of the random numbers, 0 to 2**64 - 1.
    overwrite : bool
        Replace earlier tables also if these have ``emb`` and the new ones have not.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    pathlib.Path
        The schema.

    Notes
    -----
    Four of five records join a paper with an author, a field or a paper of its venue. Degrees are skewed as in
    :func:`planted`. A paper cites papers that are not younger. The split by time that the schema asks for trains on
    papers until 2017, and validates and tests on those of 2018 and 2019. In memory are the rows of one file, 32 MB and
    a few copies.

    Examples
    --------
    >>> import fastpart as fp, tempfile, pathlib
    >>> schema = fp.generate.typed(pathlib.Path(tempfile.mkdtemp()) / "mag", features=4)
    >>> sorted(each.name for each in schema.parent.iterdir())[:4]
    ['affiliated', 'author', 'cites', 'field']
    """
    target = parameters.in_folder(parameters.path("out", out))
    scale = parameters.positive("scale", scale)
    if scale > _LARGEST_SCALE:
        raise ParameterError(f"scale: {scale} is too large. The largest is {_LARGEST_SCALE:g}")
    model = _Model(scale, parameters.integer("features", features, 0, 2**16), parameters.seed(seed))
    run = run_options(**options)
    before_polars_threads(f"out: {shown(target)}")
    overwrite = parameters.flag("overwrite", overwrite)
    with output_folder(target, MARKER, "a folder of generated tables", model.holds, overwrite) as folder:
        _write(model, folder, run)
    return target / SCHEMA


def _write(model: _Model, folder: Path, run: RunOptions) -> None:
    """Write the files of all tables, the schema and the list of files."""
    tables = model.tables()
    done, total = 0, sum(table.rows for table in tables)
    for table in tables:
        (folder / table.name).mkdir()
        for number, rows in enumerate(table.files()):
            table.frame(rows).write_parquet(folder / table.name / f"part-{number:05d}.parquet")
            done += rows.stop - rows.start
            if run.progress is not None:
                run.progress("generate", done, total)
    (folder / SCHEMA).write_text(_schema(model.features > 0))
    sizes = {table.name: table.rows for table in tables}
    content = {
        "fastpart": 1,
        "types": {name: sizes[name] for name in TYPES},
        "relations": {name: sizes[name] for name in RELATIONS},
        "holds": model.holds,
        "files": below(folder),
    }
    _core.write_file(folder / MARKER, (json.dumps(content, indent=1) + "\n").encode())


@dataclass(frozen=True)
class _Table:
    name: str
    rows: int
    row_bytes: int
    frame: Callable[[slice], pl.DataFrame]

    def files(self) -> Iterator[slice]:
        """Yield the rows of each file. A table of two rows or more has several."""
        step = max(min(math.ceil(self.rows / 4), _FILE_BYTES // self.row_bytes), 1)
        for start in range(0, self.rows, step):
            yield slice(start, min(start + step, self.rows))


class _Model:
    """All properties of vertices and records, as functions of the seed and their number.

    Vertex i belongs to venue i modulo the number of venues, if its type has venues. The first vertices of a venue have
    the most records.
    """

    def __init__(self, scale: float, features: int, seed: int) -> None:
        self.sizes = {name: max(round(scale * n), 1) for name, n in (TYPES | RELATIONS).items()}
        self.venues = min(max(self.sizes["paper"] // 50, 1), VENUES)
        self.features, self._seed = features, seed

    @property
    def holds(self) -> list[str]:
        """What the tables hold that others may lack."""
        return ["the column emb"] if self.features else []

    def tables(self) -> list[_Table]:
        """Return all tables."""
        types = {name: partial(self._vertices, name) for name in ("author", "field", "institution")}
        frames: dict[str, Callable[[slice], pl.DataFrame]] = {
            **types,
            "paper": self._papers,
            "affiliated": self._affiliated,
            "cites": self._cites,
            "has_topic": self._topics,
            "writes": self._writes,
        }
        row_bytes = {"paper": 64 + 4 * self.features}
        return [
            _Table(name, self.sizes[name], row_bytes.get(name, 64), frames[name]) for name in sorted(frames)
        ]

    def _random(self, stream: int, numbers: Numbers, count: int) -> Numbers:
        return hashed(numbers, count, self._seed, stream)

    def _uniform(self, stream: int, numbers: Numbers, count: int) -> Floats:
        """Return numbers in [0, 1), of shape (numbers, count)."""
        bits = self._random(stream, numbers, count) >> np.uint64(11)
        return bits.astype(np.float64) * 2.0**-53

    def _vertices(self, name: str, rows: slice) -> pl.DataFrame:
        return pl.DataFrame({f"{name}_id": self._ids(name, _range(rows))})

    def _papers(self, rows: slice) -> pl.DataFrame:
        papers = _range(rows)
        columns: dict[str, Any] = {"paper_id": self._ids("paper", papers)}
        columns["venue"] = "V" + pl.Series(papers % np.uint64(self.venues)).cast(pl.String).str.zfill(3)
        columns["year"] = pl.Series(self._years(papers).astype(np.int32))
        frame = pl.DataFrame(columns)
        if not self.features:
            return frame
        emb = pl.Series("emb", self._features(papers)).cast(pl.List(pl.Float32))
        return frame.with_columns(emb)

    def _years(self, papers: Numbers) -> npt.NDArray[np.int64]:
        """Return years from 2010 to 2019, the later ones more often."""
        return 2010 + (10 * np.sqrt(self._uniform(_YEAR, papers, 1)[:, 0])).astype(np.int64)

    def _features(self, papers: Numbers) -> npt.NDArray[np.float32]:
        """Return the centroid of the venue and noise of deviation 1. Sums of four numbers are nearly Gaussian."""
        places = papers % np.uint64(self.venues)
        venues, inverse = np.unique(places, return_inverse=True)
        centroids = self._noise(_CENTROID, venues) * np.float32(_SEPARATION / math.sqrt(self.features))
        return np.asarray(centroids[inverse] + self._noise(_NOISE, papers))

    def _noise(self, stream: int, numbers: Numbers) -> npt.NDArray[np.float32]:
        noise = np.zeros((len(numbers), self.features), np.float32)
        for start in range(0, len(numbers), _ROWS):
            rows = slice(start, start + _ROWS)
            random = self._random(stream, numbers[rows], self.features)
            for shift in (0, 16, 32, 48):
                noise[rows] += ((random >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.float32)
        # Four uniform numbers: mean 2, variance 1/3.
        noise *= np.float32(2.0**-16)
        noise -= np.float32(2)
        noise *= np.float32(math.sqrt(3))
        return noise

    def _affiliated(self, rows: slice) -> pl.DataFrame:
        draws = self._uniform(_AFFILIATED, _range(rows), 2)
        return self._records(
            author=_skewed(draws[:, 0], self.sizes["author"]),
            institution=_skewed(draws[:, 1], self.sizes["institution"]),
        )

    def _cites(self, rows: slice) -> pl.DataFrame:
        draws = self._uniform(_CITES, _range(rows), 4)
        one = _spread(draws[:, 0], self.sizes["paper"])
        other = self._partner(one, draws[:, 1:], self.sizes["paper"])
        n = np.uint64(self.sizes["paper"])
        other = np.where(one == other, (one + np.uint64(self.venues)) % n, other)
        younger = self._years(one) >= self._years(other)
        citing, cited = np.where(younger, one, other), np.where(younger, other, one)
        return pl.DataFrame({"citing": self._ids("paper", citing), "cited": self._ids("paper", cited)})

    def _topics(self, rows: slice) -> pl.DataFrame:
        draws = self._uniform(_TOPIC, _range(rows), 4)
        papers = _spread(draws[:, 0], self.sizes["paper"])
        return self._records(paper=papers, field=self._partner(papers, draws[:, 1:], self.sizes["field"]))

    def _writes(self, rows: slice) -> pl.DataFrame:
        draws = self._uniform(_WRITES, _range(rows), 4)
        authors = _skewed(draws[:, 0], self.sizes["author"])
        return self._records(author=authors, paper=self._partner(authors, draws[:, 1:], self.sizes["paper"]))

    def _records(self, **ends: Numbers) -> pl.DataFrame:
        return pl.DataFrame({f"{name}_id": self._ids(name, numbers) for name, numbers in ends.items()})

    def _partner(self, numbers: Numbers, draws: Floats, n: int) -> Numbers:
        """Return vertices of a type with n: four of five of the same venue, the others of any."""
        venues = np.minimum(np.uint64(self.venues), np.uint64(n))
        venue = np.where(draws[:, 0] < _INSIDE, numbers % venues, _spread(draws[:, 1], int(venues)))
        members = (np.uint64(n) - venue + venues - np.uint64(1)) // venues
        rank = np.minimum((members * _cube(draws[:, 2])).astype(np.uint64), members - np.uint64(1))
        return np.asarray(rank * venues + venue)

    def _ids(self, name: str, numbers: Numbers) -> pl.Series:
        """Return the ids of vertices: different numbers have different ids, in another order."""
        if name == "paper":
            return _uuids(numbers, self._seed)
        # Multiplication by a number that is coprime to the modulus.
        spread = (
            numbers * np.uint64(618_033_993) + np.uint64(mixed(np.uint64(self._seed)) % np.uint64(_PRIME))
        ) % np.uint64(_PRIME)
        text = pl.Series(spread).cast(pl.String).str.zfill(10)
        return name[0].upper() + text


def _range(rows: slice) -> Numbers:
    return np.arange(rows.start, rows.stop, dtype=np.uint64)


def _cube(uniform: Floats) -> Floats:
    """Return shares of a range: small ones are much more likely, so that degrees follow a power law."""
    return uniform * uniform * uniform


def _skewed(uniform: Floats, n: int) -> Numbers:
    """Return numbers below n, the first ones most often."""
    return _spread(_cube(uniform), n)


def _spread(uniform: Floats, n: int) -> Numbers:
    """Return numbers below n, each as often."""
    return np.minimum((uniform * n).astype(np.uint64), np.uint64(n - 1))


_HEX = np.frombuffer("".join(f"{each:02x}" for each in range(256)).encode(), np.uint8).reshape(256, 2)


def _uuids(numbers: Numbers, seed: int) -> pl.Series:
    """Return text like that of a UUID. The first half differs for different numbers."""
    first = mixed(numbers ^ mixed(np.uint64(seed)))
    halves = np.stack([first, mixed(first)], axis=1).astype(">u8").view(np.uint8).reshape(-1, 16)
    digits = _HEX[halves].reshape(-1, 32)
    dash = np.full((len(digits), 1), ord("-"), np.uint8)
    pieces = [digits[:, a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))]
    joined = np.concatenate([each for piece in pieces for each in (piece, dash)][:-1], axis=1)
    return pl.Series(np.ascontiguousarray(joined).view("S36")[:, 0].astype("U36"))


def _schema(features: bool) -> str:
    emb = "features: [emb], " if features else ""
    return f"""\
fastpart: 1
vertices:
  author: {{files: author/, id: author_id}}
  field: {{files: field/, id: field_id}}
  institution: {{files: institution/, id: institution_id}}
  paper:
    {{files: paper/, id: paper_id, {emb}label: venue, time: year, split: {{by: time, train: 0.8, val: 0.1, test: 0.1}}}}
relations:
  affiliated: {{files: affiliated/, source: {{author: author_id}}, target: {{institution: institution_id}}}}
  cites: {{files: cites/, source: {{paper: citing}}, target: {{paper: cited}}}}
  has_topic: {{files: has_topic/, source: {{paper: paper_id}}, target: {{field: field_id}}}}
  writes: {{files: writes/, source: {{author: author_id}}, target: {{paper: paper_id}}}}
"""
