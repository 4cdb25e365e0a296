"""The README: one screen, whose examples print what it says."""

import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from ranks import run_alone
from trainable import communities

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MOST_LINES = 120
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def run(code, folder):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The folder in which the first example ran, and what it printed."""
    folder = tmp_path_factory.mktemp("readme")
    return folder, run(EXAMPLES[0], folder)


def test_it_is_one_screen():
    assert len(README.splitlines()) <= MOST_LINES


def test_the_first_example_prints_what_the_readme_says(first):
    folder, printed = first
    said = re.search(r"prints\n\n```\n(.*?)```", README, re.DOTALL)[1]
    assert printed == said
    assert (folder / "parts.svg").stat().st_size > 1000


@pytest.mark.torch
def test_the_second_example_trains(first, monkeypatch):
    folder, _ = first
    monkeypatch.chdir(folder)
    code = f"import fastpart as fp\n{EXAMPLES[1]}\nprint(len(classes), len(batch.input_id))"
    done = run_alone("ranks", code)
    assert done.out.startswith("100000 "), done.errors
    assert (folder / "curves.svg").stat().st_size > 1000


def test_what_the_quickstart_prints_is_one_table_in_the_readme():
    table = re.search(r"prints this table last:\n\n```\n(.*?)```", README, re.DOTALL)[1].splitlines()
    assert len({len(line) for line in table}) == 1
    assert [line.split()[0] for line in table[1:]] == ["cora"] * 3 + ["amazon-computers"] * 3


@pytest.mark.torch
def test_two_frames_lead_to_predictions(tmp_path, monkeypatch):
    edges, users, topics = communities()
    edges.write_csv(tmp_path / "follows.csv")
    users.write_csv(tmp_path / "users.csv")
    (code,) = (each for each in EXAMPLES if "fp.train.nodes" in each)
    assert len(code.strip().split("\n")) <= 5
    monkeypatch.chdir(tmp_path)
    done = run_alone("ranks", f"{code}\nusers.write_parquet('predicted.parquet')")
    assert done.code == 0, done.errors
    predicted = pl.read_parquet("predicted.parquet")
    true = pl.DataFrame({"user": users["user"], "true": topics})
    hidden = predicted.join(true, on="user").filter(pl.col("topic").is_null())
    assert len(predicted) == len(users)
    assert (hidden["true"] == hidden["label"]).mean() > 0.6
    assert {"probability", "part"} <= set(predicted.columns)
