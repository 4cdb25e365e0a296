"""Results in files by suffix: tables for other programs, and tables for a text."""

import json
import re

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.core.protocols import Table
from fastpart.report.files import write_tables

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])


@pytest.fixture(scope="module")
def compared():
    return fp.compare(EDGES, 2, ["spring", "dbh"], peers=False)


def of_markdown(text):
    """Return the cells of all tables, which are unescaped."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
    return [[re.sub(r"\\(.)", r"\1", cell) for cell in row] for row in cells if row[0] not in (":--", "--:")]


def of_latex(text):
    """Return the cells of all tables."""
    rows = [line.removesuffix(r" \\") for line in text.splitlines() if line.endswith(r" \\")]
    return [[re.sub(r"\\([&%$#_{}])", r"\1", cell) for cell in re.split(r"(?<!\\) & ", row)] for row in rows]


def printed(result):
    """Return the cells of the tables that are printed, without those of one word, the titles."""
    lines = [re.split("  +", line.strip()) for line in str(result).splitlines()]
    return [line for line in lines if len(line) > 2]


@pytest.mark.parametrize(("suffix", "read"), [(".md", of_markdown), (".tex", of_latex)])
def test_a_text_has_the_tables_that_are_printed(compared, tmp_path, suffix, read):
    compared.save(tmp_path / f"c{suffix}")
    assert read((tmp_path / f"c{suffix}").read_text()) == printed(compared)
    evaluation = fp.evaluate(EDGES, [0, 0, 0, 1, 1, 1])
    evaluation.save(tmp_path / f"e{suffix}")
    rows = read((tmp_path / f"e{suffix}").read_text())
    parts = 1 + len(evaluation.parts)
    assert rows[-parts:] == printed(evaluation)[:parts]
    assert ["cut_ratio", "0.1429"] in rows
    assert rows[0] == ["measure", "value"]


@pytest.mark.parametrize(("suffix", "read"), [(".csv", pl.read_csv), (".parquet", pl.read_parquet)])
def test_data_have_all_columns_and_digits(compared, tmp_path, suffix, read):
    compared.save(tmp_path / f"c{suffix}")
    table = read(tmp_path / f"c{suffix}")
    assert table.columns == compared.summary.columns
    assert table["cut_ratio"].to_list() == compared.summary["cut_ratio"].to_list()
    evaluation = fp.evaluate(EDGES, [0, 0, 0, 1, 1, 1])
    evaluation.save(tmp_path / f"e{suffix}")
    assert read(tmp_path / f"e{suffix}").rows() == evaluation.parts.rows()


def test_json_of_measures_is_what_the_shell_prints(tmp_path):
    evaluation = fp.evaluate(EDGES, [0, 0, 0, 1, 1, 1])
    evaluation.save(tmp_path / "e.json")
    assert (tmp_path / "e.json").read_text() == evaluation.to_json()


def test_latex_has_the_rules_of_booktabs_and_an_alignment(compared, tmp_path):
    compared.save(tmp_path / "c.tex")
    text = (tmp_path / "c.tex").read_text()
    assert text.startswith("% \\usepackage{booktabs}\n% ")
    for table in re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, re.DOTALL):
        begin, top, head, mid, *_, bottom, _ = table.splitlines()
        assert [top, mid, bottom] == [r"\toprule", r"\midrule", r"\bottomrule"]
        assert begin == rf"\begin{{tabular}}{{l{'r' * head.count('&')}}}"


def test_names_cannot_break_a_table(tmp_path):
    name = r"a|b_c & 50% \x ^~ <script> {d} #1 $"
    rows = [Table("", ("name", "n"), [(name, "1")])]
    write_tables(tmp_path / "t.md", pl.DataFrame(), rows)
    assert of_markdown((tmp_path / "t.md").read_text()) == [["name", "n"], [name, "1"]]
    write_tables(tmp_path / "t.tex", pl.DataFrame(), rows)
    line = (tmp_path / "t.tex").read_text().splitlines()[5]
    assert line == (
        r"a\textbar{}b\_c \& 50\% \textbackslash{}x \textasciicircum{}\textasciitilde{} \textless{}script"
        r"\textgreater{} \{d\} \#1 \$ & 1 \\"
    )


def test_other_suffixes_are_refused_with_those_that_are_known(tmp_path):
    evaluation = fp.evaluate(EDGES, [0, 0, 0, 1, 1, 1])
    with pytest.raises(
        fp.errors.ParameterError, match=r"'.xls' of .*\. Use .json, .csv, .md, .tex or .parquet"
    ):
        evaluation.save(tmp_path / "e.xls")
    assert list(tmp_path.iterdir()) == []


def test_evaluate_writes_the_file_and_refuses_before_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("g.npy", EDGES)
    np.save("part.npy", np.array([0, 0, 0, 1, 1, 1]))
    assert main(["evaluate", "g.npy", "part.npy", "-o", "e.json"]) == 0
    assert capsys.readouterr().out.endswith("\n\nsaved to e.json\n")
    assert json.loads((tmp_path / "e.json").read_text())["summary"]["k"] == 2
    assert main(["evaluate", "absent.npy", "part.npy", "-o", "e.xls"]) == 2
    assert "unknown suffix '.xls'" in capsys.readouterr().err
