"""A schema guessed from the tables of a folder. It is text to look over, and nothing is run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ....core.frames import pl
from ....core.notes import log
from ....core.parameters import one_line
from ....core.parameters import path as checked_path
from ..columns.labels import WORDS
from ..tables import open_table
from . import guesses
from .guesses import IDENTIFIER, ROWS, End, Guess, Look, RelationGuess, VertexGuess, look
from .guesses import in_doubt as in_doubt

_SAMPLE = 10_000
"""Ends of a relation that are looked up in each table of vertices."""

_PAIRS = (
    *(("src", "dst"), ("src", "dest"), ("source", "target"), ("source", "destination"), ("from", "to")),
    *(("head", "tail"), ("start", "end"), ("u", "v"), ("subject", "object"), ("citing", "cited")),
    *(("node1", "node2"), ("sender", "receiver"), ("follower", "followee"), ("~from", "~to")),
)
"""Names of columns of sources and targets. Each also with ``_id`` or ``id``."""

_NEO4J = re.compile(r".*:(ID|START_ID|END_ID|TYPE|LABEL)(?:\(([^)]*)\))?$", re.IGNORECASE)

_PREDICATE = re.compile(r"^(relation|predicate|rel|edge_type|rel_type|relation_type|p|:TYPE)$", re.IGNORECASE)


def guess(folder: Any) -> str:
    """Return a schema for the tables of a folder as YAML, with a comment for each guess.

    Parameters
    ----------
    folder : path
        A folder. Each file or folder in it is taken for a table.

    Returns
    -------
    str
        YAML. Lines with ``# ?`` are those where two guesses fit.
    """
    root = checked_path("guess", folder)
    looks, left = look(root)
    found = Guess(str(root.resolve()), left=left)
    names = {plain(each.name) for each in looks}
    for each in looks:
        if (reason := _no_table(each)) is not None:
            found.left.append(f"{each.files}: {reason}")
        elif (relation := _relation(each, names)) is not None:
            found.relations.append(relation)
        elif (vertices := _vertices(each)) is not None:
            found.vertices.append(vertices)
        else:
            found.left.append(f"{each.files}: {_without_ids(each)}")
    _rename(found.vertices)
    _rename(found.relations)
    for relation in found.relations:
        for end in (relation.source, relation.target):
            _match(relation, end, found.vertices)
    _agree(found)
    for reason in found.left:
        log.info("left out %s", one_line(reason, 300))
    return guesses.written(found)


def _no_table(table: Look) -> str | None:
    """Return why a table holds neither vertices nor records, whatever its columns."""
    if len(table.kinds) == 1 and table.name.lower() in WORDS:
        return (
            "a list of ids, as of a split. A split is a column of the vertices that holds train, val or test"
        )
    if len(table.rows) < 2 and not any(map(_is_key, table.kinds)):
        rows = "one row" if len(table.rows) else "no row"
        return f"it has {rows}, and no column that is called an id"
    return None


def _without_ids(table: Look) -> str:
    """Return why no guess fits a table."""
    reason = "no column is unique, and no two columns look like the ends of records"
    if table.nameless:
        reason += ". If row i belongs to vertex i, add a column with these numbers"
    return reason


def _is_key(column: str) -> bool:
    """Whether a column is called an id, or an end of a record."""
    ends = {name + suffix for pair in _PAIRS for name in pair for suffix in ("", "_id", "id")}
    return bool(IDENTIFIER.search(column) or _NEO4J.match(column) or column.lower() in ends)


def plain(name: str) -> str:
    """Return a name of a table as a name of a type: without its plural and signs that no folder may have."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("._-") or "table"
    return (
        re.sub(r"(?<=[a-z]{2})ies$", "y", name)
        if name.endswith("ies")
        else re.sub(r"(?<=[a-z]{2}[^s])s$", "", name)
    )


def _rename(guesses: Sequence[VertexGuess] | Sequence[RelationGuess]) -> None:
    """Give each its own name."""
    taken: set[str] = set()
    for each in guesses:
        name, number = each.name, 2
        while each.name in taken:
            each.name, number = f"{name}-{number}", number + 1
        taken.add(each.name)


def neo4j(column: str, *wanted: str) -> str | None:
    """Return the group of a column with a header of neo4j-admin, "" if it has none. None for other columns."""
    match = _NEO4J.match(column)
    return (match[2] or "") if match and match[1].upper() in wanted else None


# Relations.


def _relation(table: Look, names: set[str]) -> RelationGuess | None:
    ends = _ends(table, names)
    if ends is None:
        return None
    (source, target), note = ends
    name = table.name.split("___")[1] if table.name.count("___") == 2 else table.name
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).lstrip(".-") or "relation"
    predicate = next((each for each in table.of("text", "int") if _PREDICATE.match(each)), None)
    if predicate is not None and (table.rows[predicate].n_unique() < 2 or predicate in (source, target)):
        predicate = None
    return RelationGuess(table, name, End(source), End(target), note, predicate)


def _ends(table: Look, names: set[str]) -> tuple[tuple[str, str], str] | None:
    """Return the columns of sources and targets, and why."""
    usable = table.of("int", "text", "binary")
    starts = [each for each in usable if neo4j(each, "START_ID") is not None]
    stops = [each for each in usable if neo4j(each, "END_ID") is not None]
    if starts and stops:
        return (starts[0], stops[0]), "by the headers of neo4j-admin"
    lower = {each.lower(): each for each in usable}
    for a, b in _PAIRS:
        for suffix in ("", "_id", "id"):
            if a + suffix in lower and b + suffix in lower:
                return (lower[a + suffix], lower[b + suffix]), "by the names of the columns"
    if table.nameless and len(table.kinds) == 2 and len(usable) == 2:
        return (usable[0], usable[1]), "two columns without names"
    keys = [each for each in usable if IDENTIFIER.search(each)]
    unique = [each for each in keys if table.unique(each)]
    if not unique and _with_repeated_ids(table, usable) is not None:
        return None
    if len(keys) >= 2 and not unique:
        more = "" if len(keys) == 2 else f" ? or others of {', '.join(keys)}"
        return (keys[0], keys[1]), f"{more.strip()} two columns of ids, neither unique".strip()
    foreign = [each for each in keys if stem(each) in names - {plain(table.name)}]
    if len(keys) == 2 and len(foreign) == 2:
        return (keys[0], keys[1]), "? or vertices, since a column is unique"
    return None


def stem(column: str) -> str:
    """Return a name of a column of ids without the word for id."""
    return plain(re.sub(r"[_:]?(id|key|uuid|guid)$", "", column, flags=re.IGNORECASE)) if column else ""


# Vertices.


def _vertices(table: Look) -> VertexGuess | None:
    usable = table.of("int", "text", "binary")
    for each in usable:
        if (group := neo4j(each, "ID")) is not None:
            return VertexGuess(table, plain(group or table.name), each, "by the header of neo4j-admin")
    unique = [each for each in usable if table.unique(each, equal_rows=True)] if len(table.rows) else usable
    if not unique:
        return _with_repeated_ids(table, usable)
    keys = [each for each in unique if IDENTIFIER.search(each)]
    own = [each for each in keys if stem(each).lower() == plain(table.name).lower()]
    best, *others = own or keys or unique
    rows = f"the first {ROWS:,} rows" if len(table.rows) == ROWS else f"{len(table.rows):,} rows"
    note = f"unique in {rows}" if len(table.rows) else "? the table is empty"
    if others:
        note = f"? or {', '.join(others)}, all unique in {rows}"
    elif table.nameless and len(table.kinds) == 1:
        note = "? a column without a name"
    guess = VertexGuess(table, plain(table.name), best, note)
    if table.repeated:
        guess.duplicates = f"? {table.repeated:,} of {rows} are equal to an earlier one"
    return guess


def _with_repeated_ids(table: Look, usable: Sequence[str]) -> VertexGuess | None:
    """Return a guess for a table that has a column with its name, or only one, as the id, in which some come again."""
    keys = [each for each in usable if IDENTIFIER.search(each)]
    own = [each for each in keys if stem(each).lower() in ("", plain(table.name).lower())] or keys
    if len(own) != 1 or table.rows[own[0]].null_count():
        return None
    again = len(table.rows) - table.rows[own[0]].n_unique()
    if 2 * again >= len(table.rows):
        return None
    guess = VertexGuess(table, plain(table.name), own[0], "by its name")
    guess.duplicates = f"? {again:,} of the first {len(table.rows):,} rows have an id that came before"
    return guess


# Which type an end is of.


def _match(relation: RelationGuess, end: End, vertices: list[VertexGuess]) -> None:
    """Find the type of an end by the header, by the name of the table, by sampled ids, or by the name of the column."""
    group = neo4j(end.column, "START_ID", "END_ID")
    if group is not None:
        end.type, end.note = plain(group) if group else _only(vertices), "by the header"
        return
    parts = relation.look.name.split("___")
    if len(parts) == 3:
        end.type = plain(parts[0] if end is relation.source else parts[2])
        end.note = "by the name of the folder"
        return
    shares = {each.name: _share(relation.look, end.column, each) for each in vertices}
    by_name = [name for name in shares if name.lower() == stem(end.column).lower()]
    best = max(shares, key=lambda name: (shares[name], name in by_name), default="")
    if not best or shares[best] < 0.01:
        named = stem(end.column)
        usual = {word for pair in _PAIRS for word in pair}
        end.type = (
            named if named and named.lower() not in usual and not named.startswith("column_") else "node"
        )
        end.note = "no table has these ids, so they come from the records"
        return
    fitting = [name for name in shares if shares[name] > shares[best] - 0.05]
    end.type = next((name for name in by_name if name in fitting), best)
    end.found = shares[end.type]
    others = [name for name in fitting if name != end.type]
    end.note = f"{end.found:.0%} of the sampled ids are there"
    if others and not by_name:
        end.note = f"? or {', '.join(others)}: {end.note}"


def _only(vertices: list[VertexGuess]) -> str:
    return vertices[0].name if len(vertices) == 1 else "node"


def _share(table: Look, column: str, vertices: VertexGuess) -> float:
    """Return the share of sampled ends that a table of vertices has."""
    ends = table.rows[column].drop_nulls().unique()
    ends = ends.sample(min(_SAMPLE, len(ends)), seed=0)
    other = vertices.look.kinds[vertices.id]
    if not len(ends) or (table.kinds[column] != other and "text" not in (table.kinds[column], other)):
        return 0.0
    binary = other == "binary"
    if binary != (table.kinds[column] == "binary"):
        return 0.0
    wanted = ends.cast(pl.Binary if binary else pl.String)
    reader = open_table(vertices.name, [each.path for each in vertices.look.found], vertices.look.format)
    found: set[Any] = set()
    for number in range(len(reader.files)):
        for batch in reader.batches(number, [vertices.id]):
            ids = batch[vertices.id].cast(wanted.dtype)
            found.update(ids.filter(ids.is_in(wanted.implode())).to_list())
    return len(found) / len(wanted)


def _agree(found: Guess) -> None:
    """Read text as numbers where other columns of the same ids are numbers."""
    for name in {end.type for each in found.relations for end in (each.source, each.target)}:
        uses: list[tuple[Look, str, End | VertexGuess]] = [
            (each.look, each.id, each) for each in found.vertices if each.name == name
        ]
        for relation in found.relations:
            uses += [
                (relation.look, end.column, end)
                for end in (relation.source, relation.target)
                if end.type == name
            ]
        if any(table.kinds[column] == "int" and not table.text for table, column, _ in uses):
            for table, column, use in uses:
                use.numeric = table.text and table.kinds[column] == "int"
