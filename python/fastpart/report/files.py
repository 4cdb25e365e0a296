"""Results in files: the suffix decides on the form.

``.csv`` and ``.parquet`` hold one table with all columns and digits, for other programs. ``.md`` and ``.tex`` hold the
tables that are shown, with the digits that are shown, for a text.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import _core
from ..core.frames import before_polars_threads, pl
from ..core.parameters import TABLES, StrPath, integer, meant, output, shown
from ..core.protocols import Table
from ..errors import ParameterError
from ..measures.compare import Comparison
from ..measures.compare.comparison import FILES
from ..partitions.results import Evaluation
from .text import cell_text, comparison_tables, conditions_of, evaluation_tables, failures

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "\N{HORIZONTAL ELLIPSIS}": r"\dots{}",
        "\N{PLUS-MINUS SIGN}": r"$\pm$ ",
        **{each: f"\\{each}" for each in "&%$#_{}"},
    }
)

_MARKDOWN = str.maketrans({each: f"\\{each}" for each in "\\|`*_<>[]"})


def save_comparison(
    comparison: Comparison,
    out: StrPath,
    columns: Sequence[str] | None = None,
    digits: int | Mapping[str, int] | None = None,
) -> None:
    """Write a comparison, as :meth:`fastpart.typing.Comparison.save` documents."""
    target = output(out, FILES)
    if target.suffix in _TEXTS:
        shown_as = _rounded(comparison, columns, digits)
        tables = [*comparison_tables(comparison, None, columns, shown_as), *failures(comparison)]
        write_tables(target, comparison.summary, tables, conditions_of(comparison.provenance))
        return
    for name, given in (("columns", columns), ("digits", digits)):
        if given is not None:
            raise ParameterError(
                f"{name}: they are for .md and .tex. A {target.suffix} holds all columns and digits"
            )
    if target.suffix in (".json", ".bib"):
        text = comparison.to_json() if target.suffix == ".json" else comparison.bibtex()
        _core.write_file(target, text.encode())
    elif target.suffix in TABLES:
        write_tables(target, comparison.summary, [])
    else:
        comparison.report(target)


def _rounded(
    comparison: Comparison, columns: Sequence[str] | None, digits: int | Mapping[str, int] | None
) -> Callable[[str, Any], str]:
    """Return what makes the text of a cell. Columns and digits are checked."""
    frame = comparison.summary
    known = [name for name, dtype in frame.schema.items() if dtype.is_numeric() and name != "k"]
    for what, given in (("columns", columns), ("digits", digits if isinstance(digits, Mapping) else None)):
        if isinstance(given, str | bytes):
            raise TypeError(f"{what}: expected a list, got {type(given).__name__}. Write it as a list: [...]")
        for name in given or ():
            if name not in known:
                raise ParameterError(
                    f"{what}: unknown column {name!r}. They are {', '.join(known)}{meant(str(name), known)}"
                )
    wanted = digits if isinstance(digits, Mapping) else {} if digits is None else dict.fromkeys(known, digits)
    decimals = {name: integer("digits", each, 0, 15) for name, each in wanted.items()}

    def text(name: str, value: Any) -> str:
        return (
            f"{value:.{decimals[name]}f}"
            if isinstance(value, float) and name in decimals
            else cell_text(value)
        )

    return text


def save_evaluation(evaluation: Evaluation, out: StrPath) -> None:
    """Write measures, as :meth:`fastpart.typing.Evaluation.save` documents."""
    target = output(out, (".json", *TABLES))
    if target.suffix == ".json":
        _core.write_file(target, evaluation.to_json().encode())
    else:
        write_tables(target, evaluation.parts, evaluation_tables(evaluation))


def write_tables(
    target: Path, data: pl.DataFrame, shown_as: Sequence[Table], conditions: Sequence[str] = ()
) -> None:
    """Write a table to a file with a suffix of ``TABLES``, atomically.

    A text shows it as several tables, below sentences on what holds for all of them.
    """
    if target.suffix in _TEXTS:
        content = _TEXTS[target.suffix](shown_as, conditions).encode()
    else:
        before_polars_threads(f"out: {shown(target)}")
        buffer = io.BytesIO()
        (data.write_parquet if target.suffix == ".parquet" else data.write_csv)(buffer)
        content = buffer.getvalue()
    _core.write_file(target, content)


def _markdown(tables: Sequence[Table], conditions: Sequence[str]) -> str:
    """Return tables in Markdown."""
    texts = [each.translate(_MARKDOWN) for each in conditions]
    for table in tables:
        marks = [":--" if place in table.left else "--:" for place in range(len(table.columns))]
        rows = _translated(table, _MARKDOWN, "**{}**")
        lines = [f"| {' | '.join(row)} |" for row in (rows[0], marks, *rows[1:])]
        title = [table.title.translate(_MARKDOWN), ""] if table.title else []
        texts.append("\n".join([*title, *lines]))
    return "\n\n".join(texts) + "\n"


def _translated(table: Table, letters: Mapping[int, str], bold: str) -> list[list[str]]:
    """Return the head and the rows of a table, with letters that the text can hold."""
    rows = [[cell.translate(letters) for cell in row] for row in table.rows]
    for row, column in table.bold:
        rows[row][column] = bold.format(rows[row][column])
    return [[name.translate(letters) for name in table.columns], *rows]


def _spoken(table: Table) -> Table:
    return table._replace(columns=[name.replace("_", " ") for name in table.columns])


def _latex(tables: Sequence[Table], conditions: Sequence[str]) -> str:
    """Return tables in LaTeX with the rules of booktabs. Heads are words without underscores.

    The sentences are comments, from which the author writes the caption.
    """
    texts = []
    for table in tables:
        marks = "".join("l" if place in table.left else "r" for place in range(len(table.columns)))
        head, *rows = (
            " & ".join(row) + r" \\" for row in _translated(_spoken(table), _LATEX, r"\textbf{{{}}}")
        )
        rows = [
            line
            for place, row in enumerate(rows)
            for line in ([r"\midrule"] * (place in table.breaks) + [row])
        ]
        lines = [rf"\begin{{tabular}}{{{marks}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule"]
        title = [f"% {table.title}"] if table.title else []
        texts.append("\n".join([*title, *lines, r"\end{tabular}"]))
    head = "".join(f"% {each}\n" for each in ("\\usepackage{booktabs}", *conditions))
    return head + "\n\n".join(texts) + "\n"


_TEXTS = {".md": _markdown, ".tex": _latex}
