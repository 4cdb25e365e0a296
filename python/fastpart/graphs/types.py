"""Types of vertices and relations of records: each is a range of ids."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from ..core.parameters import integer
from ..core.parsing import RULE, Count, Name, is_name
from ..errors import GraphFormatError, ParameterError

Reverse = bool | Literal["merged"]
"""Whether training goes against the direction of a relation, too. "merged": it takes both directions for one."""

REVERSE = "rev_"
"""What the name of a reverse relation begins with."""

_BLOCK = 1 << 18
"""Records that are checked at a time."""


@dataclass(frozen=True)
class VertexType:
    """A type of vertices.

    Attributes
    ----------
    name : str
    first : int
        Its first vertex.
    n : int
        Number of its vertices.
    range : range
        Its vertices.
    """

    name: str
    first: int
    n: int

    @property
    def range(self) -> builtins.range:
        """Its vertices."""
        return builtins.range(self.first, self.first + self.n)


@dataclass(frozen=True)
class Relation:
    """Records from vertices of one type to vertices of one type.

    Attributes
    ----------
    name : str
    source, target : str
        The types of its ends.
    first : int
        Its first record.
    m : int
        Number of its records.
    reverse : bool or "merged"
        Whether training goes against its direction, too, as a relation of its own (True) or as the same one ("merged").
    range : range
        Its records.
    """

    name: str
    source: str
    target: str
    first: int
    m: int
    reverse: Reverse

    @property
    def range(self) -> builtins.range:
        """Its records."""
        return builtins.range(self.first, self.first + self.m)


@dataclass(frozen=True)
class EdgeType:
    """Directed edges of a relation, or their reverse if that is a relation of its own.

    Attributes
    ----------
    name : str
        That of the relation, or ``rev_`` and that name, as in PyG.
    source, target : str
        The types of its ends.
    relation : Relation
        Its records.
    reversed : bool
        Whether an edge goes from the second end of a record to the first.
    """

    name: str
    source: str
    target: str
    relation: Relation
    reversed: bool

    @property
    def num_ids(self) -> int:
        """What the ids of its edges within it are below. See :meth:`ids_within`."""
        return self.relation.m * (2 if self.relation.reverse == "merged" else 1)

    def ids_within(self, ids: npt.NDArray[np.int64], num_records: int) -> npt.NDArray[np.int64]:
        """Return the ids of edges within it, given their ids in a graph of so many records.

        An edge has the number of its record in the relation. Of m records in a merged relation, the edge against record
        r has the number m + r.
        """
        against = (ids >= num_records).astype(np.int64)
        within: npt.NDArray[np.int64] = ids - num_records * against - self.relation.first
        return within + self.relation.m * against if self.relation.reverse == "merged" else within


class TypeEntry(msgspec.Struct):
    """A type in a JSON file."""

    name: Name
    n: Count


class RelationEntry(msgspec.Struct):
    """A relation in a JSON file."""

    name: Name
    source: Name
    target: Name
    m: Count
    reverse: Reverse


@dataclass(frozen=True)
class TypedRanges:
    """All types and relations of a graph, in the order of their ranges."""

    types: tuple[VertexType, ...]
    relations: tuple[Relation, ...]

    @classmethod
    def of(cls, types: Any, relations: Any, n: int, m: int, directedness: str) -> TypedRanges:
        """Return the types and relations that a sidecar lists. Refuse those that do not add up to n and m."""
        sizes = [integer("types: n", each["n"], 0, n) for each in types]
        made = cls(
            tuple(map(VertexType, [_name("type", each) for each in types], _starts(sizes), sizes)),
            tuple(_relations(relations, m, directedness)),
        )
        for what, total, found in (
            ("types", n, sizes),
            ("relations", m, [each.m for each in made.relations]),
        ):
            if sum(found) != total:
                raise ValueError(f"{what}: {sum(found)} together, expected {total}")
        for what, names in (("types", [each.name for each in made.types]), ("relations", made.names)):
            if len(set(names)) < len(names):
                raise ValueError(f"{what}: a name is there twice")
        known = {each.name for each in made.types}
        for each in made.relations:
            if not {each.source, each.target} <= known:
                raise ValueError(
                    f"relations: {each.name!r} has an end that is none of {', '.join(sorted(known))}"
                )
        return made

    @classmethod
    def without_names(cls, n: int, m: int, directedness: str) -> TypedRanges:
        """Return the one type and the one relation of a graph without types. Their names are empty."""
        reverse: Reverse = "merged" if directedness == "undirected" else False
        return cls((VertexType("", 0, n),), (Relation("", "", "", 0, m, reverse),))

    def with_records(self, counts: Sequence[int]) -> TypedRanges:
        """Return the same types and relations with so many records of each relation."""
        of_each = zip(self.relations, _starts(list(counts)), counts, strict=True)
        return TypedRanges(self.types, tuple(replace(each, first=first, m=m) for each, first, m in of_each))

    @property
    def names(self) -> list[str]:
        """The names of the relations."""
        return [each.name for each in self.relations]

    @property
    def several(self) -> bool:
        """Whether there are several types or several relations. A graph without is a plain one."""
        return len(self.types) > 1 or len(self.relations) > 1

    def ranges_of(self, end: str) -> npt.NDArray[np.int64]:
        """Return the first vertex, and that behind the last, of the type of an end of each relation.

        ``end`` is "source" or "target". The shape is (relations, 2).
        """
        ranges = {each.name: (each.first, each.first + each.n) for each in self.types}
        return np.array([ranges[getattr(each, end)] for each in self.relations], np.int64).reshape(-1, 2)

    @property
    def edge_types(self) -> tuple[EdgeType, ...]:
        """The relations, and then the reverse ones that are relations of their own."""
        forward = [EdgeType(each.name, each.source, each.target, each, False) for each in self.relations]
        backward = [
            EdgeType(f"{REVERSE}{each.name}", each.target, each.source, each, True)
            for each in self.relations
            if each.reverse is True
        ]
        return (*forward, *backward)

    @property
    def directions(self) -> list[tuple[int, int | None]]:
        """The records of each relation, and the number of the edge type of its reverse edges, for the core."""
        numbers = {each.relation.name: number for number, each in enumerate(self.edge_types) if each.reversed}
        return [
            (each.m, number if each.reverse == "merged" else numbers.get(each.name))
            for number, each in enumerate(self.relations)
        ]

    @property
    def num_reversed(self) -> int:
        """The number of records that also are an edge against their direction. Loops of merged relations are not."""
        return sum(each.m for each in self.relations if each.reverse)

    def refuse_as_folders(self) -> None:
        """Refuse a relation that has the name of a reverse one: both would be the same folder."""
        names = [each.name for each in self.edge_types]
        for name in names:
            if names.count(name) > 1:
                raise ParameterError(
                    f"graph: {name!r} is a relation, and the reverse of {name.removeprefix(REVERSE)!r}. Say "
                    f"`reverse: false` for {name.removeprefix(REVERSE)!r}, or rename one of them"
                )

    @property
    def content(self) -> dict[str, list[dict[str, Any]]]:
        """The entries of a sidecar."""
        return {
            "types": [{"name": each.name, "n": each.n} for each in self.types],
            "relations": [
                {name: getattr(each, name) for name in ("name", "source", "target", "m", "reverse")}
                for each in self.relations
            ],
        }

    def __str__(self) -> str:
        return ", ".join(
            f"{len(each)} {word}" + ("s" if len(each) != 1 else "")
            for each, word in ((self.types, "type"), (self.relations, "relation"))
        )

    def check(self, block: Callable[[int, int], npt.NDArray[np.uint32]], where: str) -> None:
        """Read all records, and refuse the first whose ends are not of the types of its relation.

        ``block`` returns a range of records.
        """
        types = {each.name: each.range for each in self.types}
        for relation in self.relations:
            ends = types[relation.source], types[relation.target]
            for start in range(relation.first, relation.range.stop, _BLOCK):
                records = block(start, min(start + _BLOCK, relation.range.stop))
                wrong = _outside(records[:, 0], ends[0]) | _outside(records[:, 1], ends[1])
                if wrong.any():
                    place = int(wrong.argmax())
                    source, target = records[place]
                    raise GraphFormatError(
                        f"{where}: record {start + place} leads from {source} to {target}, but {relation.name!r} leads "
                        f"from {_shown(relation.source, ends[0])} to {_shown(relation.target, ends[1])}. The types and "
                        "relations in the sidecar are those of other records. Ingest again"
                    )


def default_reverse(source: str, target: str, directedness: str) -> Reverse:
    """Return what becomes of the reverse of a relation that says nothing."""
    if source != target:
        return True
    return "merged" if directedness == "undirected" else False


def _name(what: str, entry: Mapping[str, Any]) -> str:
    name = entry["name"]
    if not isinstance(name, str):
        raise TypeError("a name is no text")
    if not is_name(name):
        raise ParameterError(f"graph: the {what} {name!r} cannot be the name of a folder. {RULE}")
    return name


def _starts(sizes: list[int]) -> Iterator[int]:
    return accumulate(sizes[:-1], initial=0)


def _relations(entries: Any, m: int, directedness: str) -> Iterator[Relation]:
    sizes = [integer("relations: m", each["m"], 0, m) for each in entries]
    for each, first, size in zip(entries, _starts(sizes), sizes, strict=False):
        source, target = each["source"], each["target"]
        reverse = each.get("reverse", default_reverse(source, target, directedness))
        if not (isinstance(reverse, bool) or (reverse == "merged" and source == target)):
            raise ValueError(f"relations: reverse of {each['name']!r} is {reverse!r}")
        yield Relation(_name("relation", each), source, target, first, size, reverse)


def _outside(ids: npt.NDArray[np.uint32], valid: range) -> npt.NDArray[np.bool_]:
    return np.asarray((ids < valid.start) | (ids >= valid.stop))


def _shown(name: str, ids: range) -> str:
    return f"{name!r} ({ids.start} to {ids.stop - 1})" if ids else f"{name!r} (none)"
