"""Guesses as YAML, with a comment for each, from a first look at the columns and the first rows of tables."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ....core.folders import leads_out
from ....core.frames import before_polars_threads, pl
from ....core.parameters import one_line, shown
from ....errors import FastpartError, GraphFormatError
from ..columns.rows import is_text
from ..columns.surveys import Missing, elements
from ..schema import Csv, Format
from ..tables.formats import SEPARATORS, known, opened, source_of
from ..tables.listing import Found, find, hidden, table_kind
from ..tables.tablefiles import reading, source_of_snapshot, with_partitions

ROWS = 100_000
"""Rows of a table that are looked at."""

IDENTIFIER = re.compile(r"(^|[_~])(id|key|uuid|guid)$|[a-z](Id|ID|Key)$")
"""Names of columns of ids."""

FEW = 32
"""Values of a column that are proposed as a column of 0 and 1 each, at most."""

Kind = Literal["int", "text", "binary", "number", "vector", "texts", "time", "other"]


@dataclass
class Look:
    """A table as it looks like."""

    name: str
    files: str
    """What a schema calls its files, from the folder on."""
    found: list[Found]
    format: Format | None
    rows: pl.DataFrame
    """The first rows. Columns of text that holds numbers are numbers."""
    kinds: dict[str, Kind]
    text: bool
    """Whether it is a text file, whose columns an ingest reads as text."""
    notes: list[str] = field(default_factory=list)

    @property
    def nameless(self) -> bool:
        """Whether its columns have no names."""
        return self.format is not None and self.format.csv is not None and not self.format.csv.header

    @cached_property
    def distinct(self) -> pl.DataFrame:
        """The first rows, equal ones once. Lists are not compared."""
        flat = [column.name for column in self.rows.get_columns() if not column.dtype.is_nested()]
        return self.rows.select(flat).unique(maintain_order=True) if flat else self.rows

    @property
    def repeated(self) -> int:
        """How many rows are equal to an earlier one, if they are not most."""
        count = len(self.rows) - len(self.distinct)
        return count if 2 * count < len(self.rows) else 0

    def unique(self, column: str, equal_rows: bool = False) -> bool:
        """Whether no value of a column comes twice or is missing, on request apart from rows that are equal."""
        values = self.rows[column]
        rows = len(values) - (self.repeated if equal_rows else 0)
        return not values.null_count() and values.n_unique() == rows

    def missing(self, column: str) -> int:
        """In how many rows a value, or an element of it, is missing."""
        fact = Missing(column, numbers=self.kinds[column] in ("int", "number", "vector"))
        fact.add(self.rows[column])
        return fact.found()

    def few(self, column: str) -> int:
        """Return the number of values of a column if they are few, each in two rows or more on average. Else 0."""
        values = elements(self.rows[column]).drop_nulls()
        count = values.n_unique() if len(values) else 0
        return count if count <= FEW and 2 * count <= len(values) else 0

    def of(self, *kinds: Kind) -> list[str]:
        """Return the columns of these kinds."""
        return [name for name, kind in self.kinds.items() if kind in kinds]


@dataclass
class End:
    """The source or target of a relation."""

    column: str
    type: str = ""
    note: str = ""
    found: float = 1.0
    """The share of sampled ends that the table of the type has."""
    numeric: bool = False
    """Read ``as: int``."""


@dataclass
class VertexGuess:
    """A table that seems to hold vertices."""

    look: Look
    name: str
    id: str
    note: str
    numeric: bool = False
    duplicates: str = ""
    """Why only the first of the rows with one id is taken."""


@dataclass
class RelationGuess:
    """A table that seems to hold records."""

    look: Look
    name: str
    source: End
    target: End
    note: str
    predicate: str | None = None


@dataclass
class Guess:
    """All that a folder seems to hold."""

    folder: str
    vertices: list[VertexGuess] = field(default_factory=list)
    relations: list[RelationGuess] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """What is left out, and why."""


def look(folder: Path) -> tuple[list[Look], list[str]]:
    """Return the tables of a folder, and why the others are left out."""
    before_polars_threads(f"guess: {shown(folder)}")
    looks: list[Look] = []
    left: list[str] = []
    for name, files, found in _tables(folder, "", left):
        try:
            looks.append(_look_at(name, files, found))
        except (FastpartError, FileNotFoundError) as error:
            left.append(f"{files}: {str(error).removeprefix(f'{folder}/').removeprefix(f'{files}: ')}")
    return looks, left


def _tables(folder: Path, above: str, left: list[str]) -> list[tuple[str, str, list[Found]]]:
    """Return name, files and found files of each table: a folder of files, or files whose names differ in a number.

    Links to folders, and those that lead out of the folder, are ``left`` out.
    """
    tables: dict[str, tuple[str, str, list[Found]]] = {}
    for entry in sorted(os.scandir(folder), key=lambda each: os.fsencode(each.name)):
        path = f"{above}{entry.name}"
        if hidden(entry.name):
            continue
        if entry.is_symlink() and (entry.is_dir() or leads_out(entry.path, folder)):
            left.append(f"{path}: a link. Name in `files` what it leads to")
        elif entry.is_dir():
            if _is_table(Path(entry.path)):
                tables[path] = entry.name, f"{path}/", find(path, entry.path, "")
            else:
                for table in _tables(Path(entry.path), f"{path}/", left):
                    tables[table[1]] = table
        elif known(entry.name):
            stem, _, suffix = entry.name.partition(".")
            plain = re.sub(r"[-_]?\d+$", "", stem)
            files = [*find(path, entry.path, "")]
            key = f"{above}{plain}*.{suffix}" if plain and plain != stem else path
            # A folder of OGB says by its name between which types its edges are.
            own = Path(above).name if stem == "edge" and above.count("___") == 2 else plain or stem
            name, _, others = tables.get(key, (own, key, []))
            tables[key] = name, key if len(others + files) > 1 else path, others + files
    return list(tables.values())


def _is_table(folder: Path) -> bool:
    """Whether the files below a folder belong to one table."""
    names = [name for name in os.listdir(folder) if not hidden(name)]
    if table_kind(str(folder), os.listdir(folder)):
        return True
    if any("=" in name for name in names):
        return True
    files = [name for name in names if (folder / name).is_file() and known(name)]
    stems = {re.sub(r"[-_.]*\d.*$", "", name.partition(".")[0]) for name in files}
    return len(stems) == 1 and not any((folder / name).is_dir() for name in names)


def _look_at(name: str, files: str, found: list[Found]) -> Look:
    first = found[0]
    notes: list[str] = []
    format = _format(first, notes)
    source = source_of_snapshot(first) if first.table else source_of(first, format, None)
    with reading(first.path, source):
        if wrong := source.check():
            raise GraphFormatError(f"{shown(first.path)}: not {source.what}: {wrong}")
        rows = with_partitions(source).head(ROWS).collect()
    if source.text:
        rows = rows.with_columns(_typed(column) for column in rows.get_columns())
    kinds = {column.name: _kind(column.dtype) for column in rows.get_columns()}
    return Look(name, files, found, format, rows, kinds, source.text, notes)


def look_at_frame(name: str, rows: pl.DataFrame) -> Look:
    """Return how a frame looks like, by all of its rows."""
    kinds = {column.name: _kind(column.dtype) for column in rows.get_columns()}
    return Look(name, name, [], None, rows, kinds, False)


def _format(found: Found, notes: list[str]) -> Format | None:
    """Return how a text file is written, where it is not as its suffix says."""
    suffix = os.path.splitext(re.sub(r"\.(gz|zst|bz2|xz)$", "", found.path.lower()))[1]
    if suffix not in (".csv", ".tsv", ".txt") or found.path.lower().endswith(".zst"):
        return None
    usual = SEPARATORS.get(suffix, ",")
    with opened(found.path) as lines:
        first = lines.readline(1 << 16)
    counts = {sign: first.count(sign) for sign in (usual, ",", "\t", ";", "|", " ")}
    separator = usual if counts[usual] else max(counts, key=lambda sign: counts[sign])
    separator = separator if counts[separator] else usual
    fields = first.strip().split(separator)
    header = not all(re.fullmatch(r'"?-?\d+(\.\d+)?"?', each) for each in fields)
    if not header:
        notes.append("its first line holds numbers, so it has no header")
    if separator == usual and header:
        return None
    return Format(csv=Csv(separator=None if separator == usual else separator, header=header))


def _typed(column: pl.Series) -> pl.Series:
    """Return text as numbers or times if all of it is."""
    for dtype in (pl.Int64, pl.Float64, pl.Date):
        cast = column.cast(dtype, strict=False) if dtype != pl.Date else _dates(column)
        if cast.null_count() == column.null_count() and column.null_count() < len(column):
            zeros = dtype == pl.Int64 and bool((cast.cast(pl.String) != column).any())
            return column if zeros else cast  # 007 is no number
    return column


def _dates(column: pl.Series) -> pl.Series:
    return column.str.to_date("%Y-%m-%d", strict=False)


def _kind(dtype: Any) -> Kind:
    if dtype.is_integer():
        return "int"
    if is_text(dtype):
        return "text"
    if dtype == pl.Binary:
        return "binary"
    if dtype in (pl.Date, pl.Datetime):
        return "time"
    if dtype.is_numeric() or dtype == pl.Boolean:
        return "number"
    if isinstance(dtype, pl.List | pl.Array) and dtype.inner.is_numeric():
        return "vector"
    if isinstance(dtype, pl.List | pl.Array) and is_text(dtype.inner):
        return "texts"
    return "other"


_COLUMN = 34
"""Where comments begin."""

_LABEL = re.compile(r"^(label|labels|y|target|class)$", re.IGNORECASE)
_TIME = re.compile(r"(_at|^time|_time|timestamp|^year|_year|^date|_date)$", re.IGNORECASE)
_WEIGHT = re.compile(r"^(weight|w|score|rating)$", re.IGNORECASE)
_SPLITS = {"train", "val", "test"}
_SHARES = "{by: random, train: 0.8, val: 0.1, test: 0.1}"
_MASK = re.compile(
    r"^((train|val|valid|validation|test)_?mask|is_(train|val|valid|validation|test))$", re.IGNORECASE
)
_NO_FEATURE = re.compile(r":(LABEL|TYPE|IGNORE)(\(.*\))?$", re.IGNORECASE)
"""Headers of neo4j-admin that say what a row is."""


def written(found: Guess) -> str:
    """Return what was found as the text of a schema."""
    lines = [
        "fastpart: 1",
        f"root: {quoted(found.folder)}",
        "vertices:",
    ]
    for each in found.vertices:
        lines += _vertices(each)
    declared = {each.name for each in found.vertices}
    others = {end.type for each in found.relations for end in (each.source, each.target)} - declared
    lines += [
        _line(f"  {quoted(name)}: {{}}", "no table: its ids are those that relations name")
        for name in sorted(others)
    ]
    if lines[-1] == "vertices:":
        lines[-1] = _line("vertices: {}", "? no table of vertices was found")
    lines.append(
        "relations:" if found.relations else _line("relations: {}", "? no table of records was found")
    )
    starred = False
    for relation in found.relations:
        star = relation.predicate is not None and not starred
        starred |= star
        lines += _relation(relation, star)
    lines += [f"# ? left out: {one_line(each, 300)}" for each in found.left]
    look = " Look over the lines with `# ?`." if in_doubt(lines) else ""
    return "\n".join([f"# Guessed from names, types and first rows of the tables.{look}", *lines]) + "\n"


def in_doubt(lines: Iterable[str]) -> bool:
    """Whether any line of a schema is marked as one to look over."""
    return any("# ?" in line and "`# ?`" not in line for line in lines)


def quoted(text: str) -> str:
    """Return text as YAML writes it."""
    plain = re.fullmatch(r"[A-Za-z_/][A-Za-z0-9_./-]*", text)
    words = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
    return text if plain and text.lower() not in words else json.dumps(text, ensure_ascii=False)


def _line(text: str, note: str = "") -> str:
    if not note:
        return text
    return f"{text.ljust(_COLUMN)}{'  ' if len(text) >= _COLUMN else ''}# {one_line(note)}"


def _vertices(guess: VertexGuess) -> list[str]:
    table = guess.look
    lines = [f"  {quoted(guess.name)}:", *_files(table)]
    lines.append(_line(f"    id: {_key(guess.id, guess.numeric)}", guess.note))
    if guess.duplicates:
        lines.append(_line("    duplicates: first", guess.duplicates))
    rest = [each for each in table.kinds if each != guess.id]
    split, time = _split(table, rest), _time(table, rest)
    label = _label(table, rest) or _few(table, rest)
    if label and not split and not any(_MASK.match(each) for each in rest):
        split = [f"    # ? split: {_SHARES}, for a training"]
    lines += label + split + time + _features(table, rest)
    return lines + _masks(table, rest) + _unused(table, rest)


def _relation(guess: RelationGuess, star: bool) -> list[str]:
    table = guess.look
    name = '"*"' if star else quoted(guess.name)
    lines = [f"  {name}:", *_files(table)]
    rest = [each for each in table.kinds if each not in (guess.source.column, guess.target.column)]
    if star and guess.predicate is not None:
        rest.remove(guess.predicate)
        lines.append(_line(f"    relation: {quoted(guess.predicate)}", "its values name the relations"))
    for end, column in (("source", guess.source), ("target", guess.target)):
        note = f"{guess.note}; {column.note}" if end == "source" else column.note
        note = f"? {note.replace('? ', '')}" if "?" in note else note
        lines.append(
            _line(f"    {end}: {{{quoted(column.type)}: {_key(column.column, column.numeric)}}}", note)
        )
    ids = table.rows.select(guess.source.column, guess.target.column)
    if nulls := ids.select(pl.any_horizontal(pl.all().is_null()).sum()).item():
        lines.append(_line("    nulls: drop", f"? {nulls:,} of {len(ids):,} rows lack an id"))
    if min(guess.source.found, guess.target.found) < 1:
        lines.append(_line("    missing: drop", "? or add, since some ids are in no table"))
    weights = [each for each in rest if _WEIGHT.search(each) and table.kinds[each] in ("int", "number")]
    if weights:
        rest.remove(weights[0])
        lines.append(_line(f"    weight: {quoted(weights[0])}", "by its name"))
    lines += _label(table, rest) + _split(table, rest) + _time(table, rest) + _features(table, rest)
    return lines + _masks(table, rest) + _unused(table, rest)


def _files(table: Look) -> list[str]:
    note = "; ".join(table.notes)
    lines = [_line(f"    files: {quoted(table.files)}", note if table.format is None else "")]
    if table.format is not None and table.format.csv is not None:
        csv = table.format.csv
        keys = [] if csv.separator is None else [f"separator: {json.dumps(csv.separator)}"]
        keys += [] if csv.header else ["header: false"]
        lines.append(_line(f"    format: {{csv: {{{', '.join(keys)}}}}}", note or "by the first line"))
    return lines


def _key(column: str, numeric: bool) -> str:
    return f"{{column: {quoted(column)}, as: int}}" if numeric else quoted(column)


def _label(table: Look, rest: list[str]) -> list[str]:
    for each in rest:
        if _LABEL.match(each) and table.kinds[each] in ("int", "text", "number", "vector"):
            rest.remove(each)
            return [_line(f"    label: {quoted(each)}", "by its name")]
    return []


def _few(table: Look, rest: list[str]) -> list[str]:
    """Return a comment that names the columns of few values, of which one may be the label."""
    few = [each for each in rest if table.kinds[each] in ("int", "text") and table.few(each) > 1]
    few = [each for each in few if not (_NO_FEATURE.search(each) or IDENTIFIER.search(each))]
    return (
        [f"    # ? label: {', or '.join(map(one_line, few))}. Then take it out of the features"]
        if few
        else []
    )


def _split(table: Look, rest: list[str]) -> list[str]:
    for each in rest:
        values = set(table.rows[each].drop_nulls().unique()) if table.kinds[each] == "text" else set()
        if values <= _SPLITS and "train" in values:
            rest.remove(each)
            return [_line(f"    split: {quoted(each)}", "holds train, val, test")]
    return []


def _time(table: Look, rest: list[str]) -> list[str]:
    times = [each for each in rest if table.kinds[each] == "time"]
    times += [each for each in rest if _TIME.search(each) and table.kinds[each] == "int"]
    if not times:
        return []
    rest.remove(times[0])
    note = "a date" if table.kinds[times[0]] == "time" else "by its name"
    return [_line(f"    time: {quoted(times[0])}", f"? or {', '.join(times[1:])}" if times[1:] else note)]


def _features(table: Look, rest: list[str]) -> list[str]:
    """Return the line of the features, or a line for each if one needs more than its name."""
    found = {each: feature for each in rest if (feature := feature_of(table, each)) is not None}
    for each in found:
        rest.remove(each)
    plain = [each for each, (more, note) in found.items() if not more and not note]
    shared = re.match(r"(.*[A-Za-z_])\d+$", plain[0]) if len(plain) > 8 else None
    if shared and all(re.fullmatch(rf"{re.escape(shared[1])}\d+", each) for each in plain):
        plain = [f"{shared[1]}*"]
    if not any(more or note for more, note in found.values()):
        return [_line(f"    features: [{', '.join(map(quoted, plain))}]", "numbers")] if plain else []
    lines = [_line(f"      - {quoted(each)}", "numbers") for each in plain]
    for each, (more, note) in found.items():
        if more or note:
            keys = "".join(
                f", {key}: {quoted(value) if isinstance(value, str) else json.dumps(value)}"
                for key, value in more.items()
            )
            told = f"{{column: {quoted(each)}{keys}}}" if more else quoted(each)
            lines.append(_line(f"      - {told}", note))
    return ["    features:", *lines]


def feature_of(table: Look, column: str) -> tuple[dict[str, Any], str] | None:
    """Return the keys that a feature needs beside its name, and a comment. None for a column that is none."""
    kind, missing = table.kinds[column], table.missing(column)
    if _NO_FEATURE.search(column) or _MASK.match(column) or IDENTIFIER.search(column):
        return None
    if kind == "int" and table.unique(column, equal_rows=True):
        return None
    lacking = f"? {missing:,} of {len(table.rows):,} rows lack it" if missing else ""
    if kind in ("number", "vector"):
        return ({"fill": 0} if missing else {}), lacking
    few = table.few(column) if kind in ("int", "text", "texts") else 0
    if kind == "int":
        note = f"? or as: onehot, of {few} values" if few > 2 else "whole numbers"
        return ({"fill": 0} if missing else {}), lacking or note
    if few > 1:
        return {"as": "onehot", **({"fill": "unknown"} if missing else {})}, lacking or f"{few} values"
    if kind == "time" and not missing:
        return {"as": "days", "standardise": True}, "a date"
    return None


def _masks(table: Look, rest: list[str]) -> list[str]:
    """Return a line about columns that say of one split each whether a row is in it."""
    masks = [each for each in rest if _MASK.match(each)]
    for each in masks:
        rest.remove(each)
    told = ", ".join(one_line(each, 60) for each in masks)
    return [f"    # ? split: one column that holds train, val or test, for {told}"] if masks else []


def _unused(table: Look, rest: list[str]) -> list[str]:
    known: dict[Any, str] = {"int": "whole numbers", "texts": "lists of text", "other": "of no use"}
    shown = [f"{one_line(each, 60)} ({known.get(table.kinds[each], table.kinds[each])})" for each in rest]
    return [f"    # not used: {', '.join(shown)}"] if shown else []
