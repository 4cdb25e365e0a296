"""Learned rows of categories, which stand behind the other features in place of their codes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...core.notes import log
from ...core.parameters import one_line, shown
from ...errors import ParameterError
from ...graphs.graph_directory import Embedded, EmbeddedColumn
from .scores import Task

_NAMED = 3
"""New values that a note names."""


class CategoryTable(nn.Module):
    """A learned row for each category of a column, and one each for unknown and for missing values.

    The last two begin with zeros. So values that no training has seen have zeros, the mean of the first rows.
    """

    def __init__(self, column: EmbeddedColumn) -> None:
        super().__init__()
        self.place = column.place
        self.weight = nn.Parameter(torch.empty(column.rows, column.dim))
        nn.init.normal_(self.weight, std=column.dim**-0.5)
        with torch.no_grad():
            self.weight[column.unknown_code :] = 0
        self.codes: Tensor | None = None
        """The code here of each code of the graph. None: they are the same."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the learned row of each row of features."""
        codes = x[:, self.place].long()
        return F.embedding(codes if self.codes is None else self.codes.to(codes.device)[codes], self.weight)


class TypeCategories(nn.Module):
    """The columns of categories of a type."""

    def __init__(self, columns: Embedded) -> None:
        super().__init__()
        self.columns = tuple(columns)
        self._places = sorted(each.place for each in columns.values())
        self.tables = nn.ModuleList(CategoryTable(each) for each in columns.values())

    def forward(self, x: Tensor) -> Tensor:
        """Return features without codes, and the learned rows behind them."""
        others = [x[:, start + 1 : stop] for start, stop in pairwise([-1, *self._places, x.shape[1]])]
        return torch.cat([*others, *(table(x) for table in self.tables)], 1)


class Categories(nn.Module):
    """The columns of categories of all types."""

    def __init__(self, categories: Mapping[str, Embedded]) -> None:
        super().__init__()
        self.names = tuple(categories)
        self.types = nn.ModuleList(TypeCategories(each) for each in categories.values())

    def forward(self, x: Any) -> Any:
        """Return rows of features, which may be by type, with learned rows in place of codes."""
        if isinstance(x, Tensor):
            return self.types[0](x)
        return {
            **x,
            **{name: of(x[name]) for name, of in zip(self.names, self.types, strict=True) if name in x},
        }


class WithCategories(nn.Module):
    """A module of a user, which gets learned rows of categories in place of codes."""

    def __init__(self, model: nn.Module, categories: Categories) -> None:
        super().__init__()
        self.model, self.categories = model, categories
        self.edge_attr = getattr(model, "edge_attr", False)

    def forward(self, graphs: Any, x: Any) -> Any:
        """Return the outputs of the module."""
        return self.model(graphs, self.categories(x))


def match_categories(network: nn.Module, task: Task, there: Task, source: Path) -> None:
    """Let a trained network read the codes of another directory, whose categories are matched by their values.

    Values that it was not trained on count as unknown, and a note says how many vertices have them.

    Raises
    ------
    ParameterError
        The directory has other columns of categories.
    """
    for name in {**task.categories, **there.categories}:
        trained, given = task.categories.get(name, {}), there.categories.get(name, {})
        if (ours := _places(trained)) != (theirs := _places(given)):
            of_type = f" of {name!r}" if name else ""
            raise ParameterError(
                f"source: {shown(source)} has the columns of categories {theirs or 'none'}{of_type}, but the model was "
                f"trained on {ours or 'none'}. Ingest with the same `features`"
            )
    for categories in network.modules():
        if not isinstance(categories, Categories):
            continue
        for name, of_type in zip(categories.names, categories.types, strict=True):
            for column, table in zip(of_type.columns, of_type.tables, strict=True):
                table.codes = _codes(
                    name, column, task.categories[name][column], there.categories[name][column]
                )


def _places(columns: Embedded) -> dict[str, int]:
    return {column: each.place for column, each in columns.items()}


def _codes(name: str, column: str, trained: EmbeddedColumn, given: EmbeddedColumn) -> Tensor | None:
    """Return the code that a network knows for each code of a graph. 5 and "5" are one value."""
    known = {str(value): code for code, value in enumerate(trained.values)}
    codes = [known.get(str(value), trained.unknown_code) for value in given.values]
    new = [place for place, code in enumerate(codes) if code == trained.unknown_code and given.counts[place]]
    if count := sum(given.counts[place] for place in new) + given.unknown:
        named = ", ".join(one_line(repr(given.values[place]), 40) for place in new[:_NAMED])
        log.warning(
            "source: column %r%s: %s a value that the model was not trained on%s. They have the row of unknown values",
            column,
            f" of {name!r}" if name else "",
            "1 vertex has" if count == 1 else f"{count:,} vertices have",
            f" ({named}{f' and {len(new) - _NAMED:,} more' if len(new) > _NAMED else ''})" if new else "",
        )
    return torch.tensor([*codes, trained.unknown_code, trained.missing_code])
