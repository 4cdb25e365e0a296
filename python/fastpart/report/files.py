"""Results in files: the suffix decides on the form.

``.csv`` and ``.parquet`` hold one table with all columns and digits, for other programs. ``.md`` and ``.tex`` hold the
tables that are shown, with the digits that are shown, for a text.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from .. import _core
from ..core.frames import before_polars_threads, pl
from ..core.parameters import TABLES, StrPath, output, shown
from ..core.protocols import Table
from ..measures.compare import Comparison
from ..measures.compare.comparison import FILES
from ..partitions.results import Evaluation
from .text import comparison_tables, evaluation_tables

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "\N{HORIZONTAL ELLIPSIS}": r"\dots{}",
        **{each: f"\\{each}" for each in "&%$#_{}"},
    }
)

_MARKDOWN = str.maketrans({each: f"\\{each}" for each in "\\|`*_<>[]"})


def save_comparison(comparison: Comparison, out: StrPath) -> None:
    """Write a comparison, as :meth:`fastpart.typing.Comparison.save` documents."""
    target = output(out, FILES)
    if target.suffix == ".json":
        _core.write_file(target, comparison.to_json().encode())
    elif target.suffix in TABLES:
        write_tables(target, comparison.summary, comparison_tables(comparison))
    else:
        comparison.report(target)


def save_evaluation(evaluation: Evaluation, out: StrPath) -> None:
    """Write measures, as :meth:`fastpart.typing.Evaluation.save` documents."""
    target = output(out, (".json", *TABLES))
    if target.suffix == ".json":
        _core.write_file(target, evaluation.to_json().encode())
    else:
        write_tables(target, evaluation.parts, evaluation_tables(evaluation))


def write_tables(target: Path, data: pl.DataFrame, shown_as: Sequence[Table]) -> None:
    """Write a table to a file with a suffix of ``TABLES``, atomically. A text shows it as several tables."""
    if target.suffix in _TEXTS:
        content = _TEXTS[target.suffix](shown_as).encode()
    else:
        before_polars_threads(f"out: {shown(target)}")
        buffer = io.BytesIO()
        (data.write_parquet if target.suffix == ".parquet" else data.write_csv)(buffer)
        content = buffer.getvalue()
    _core.write_file(target, content)


def _markdown(tables: Sequence[Table]) -> str:
    """Return tables in Markdown."""
    texts = []
    for table in tables:
        marks = [":--" if place in table.left else "--:" for place in range(len(table.columns))]
        rows = [[cell.translate(_MARKDOWN) for cell in row] for row in (table.columns, *table.rows)]
        lines = [f"| {' | '.join(row)} |" for row in (rows[0], marks, *rows[1:])]
        title = [table.title.translate(_MARKDOWN), ""] if table.title else []
        texts.append("\n".join([*title, *lines]))
    return "\n\n".join(texts) + "\n"


def _latex(tables: Sequence[Table]) -> str:
    """Return tables in LaTeX with the rules of booktabs."""
    texts = []
    for table in tables:
        marks = "".join("l" if place in table.left else "r" for place in range(len(table.columns)))
        head, *rows = (
            " & ".join(cell.translate(_LATEX) for cell in row) + r" \\"
            for row in (table.columns, *table.rows)
        )
        lines = [rf"\begin{{tabular}}{{{marks}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule"]
        title = [f"% {table.title}"] if table.title else []
        texts.append("\n".join([*title, *lines, r"\end{tabular}"]))
    return "% \\usepackage{booktabs}\n" + "\n\n".join(texts) + "\n"


_TEXTS = {".md": _markdown, ".tex": _latex}
