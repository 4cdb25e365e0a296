"""What fastpart computes, writes and prints, as it was: a change needs an entry in CHANGELOG.md that says why.

With such a reason, write all digests again: ``python tests/test_recorded_bits.py``, where torch is installed. With
``--without-torch`` entries that need torch stay as they are. tests/test_golden.py has partitions and generated graphs.
"""

import argparse
import importlib.util
import json
import tempfile
from collections.abc import Callable
from operator import eq
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bits import batches, directories, losses, shell

BITS = Path(__file__).with_name("data") / "bits.json"

pytestmark = pytest.mark.filterwarnings("ignore:chunk:UserWarning")


class Section(NamedTuple):
    """A part of the file."""

    cases: list[str]
    """Names of what is computed."""
    of_torch: set[str]
    """Those that need torch."""
    found: Callable[[str], Any]
    """Returns the entry of a case, or its entries by name."""
    same: Callable[[Any, Any], bool] = eq
    """Whether two entries are the same."""


def _told(words):
    with tempfile.TemporaryDirectory() as folder:
        return shell.json_of(words, Path(folder))


SECTIONS = {
    "batches": Section([*batches.CASES], {*batches.CASES}, lambda name: {"": batches.found(name)}),
    "losses": Section(
        [*losses.CASES], {*losses.CASES}, lambda name: {"": losses.found(name)}, losses.is_same
    ),
    "directories": Section([*directories.CASES], {*directories.OF_TORCH}, directories.found),
    "help": Section([*shell.HELP], set(), lambda verb: {"": shell.help_of(verb)}),
    "json": Section([*shell.JSON, *shell.TRAINED], {*shell.TRAINED}, _told),
}
"""The parts of the file, by name."""


def entries(section, case):
    """Compute a case. Return its entries by their names in the file."""
    found = SECTIONS[section].found(case)
    return {f"{case}: {name}" if name else case: entry for name, entry in found.items()}


def case_of(entry):
    """Return the case that an entry of the file belongs to."""
    return entry.partition(": ")[0]


ITEMS = [
    pytest.param(
        section, case, marks=[pytest.mark.torch] if case in of.of_torch else [], id=f"{section}: {case}"
    )
    for section, of in SECTIONS.items()
    for case in of.cases
]


@pytest.fixture(scope="module")
def recorded():
    return json.loads(BITS.read_text())


@pytest.mark.parametrize(("section", "case"), ITEMS)
def test_is_what_it_was(recorded, section, case):
    found, same = entries(section, case), SECTIONS[section].same
    before = {name: entry for name, entry in recorded[section].items() if case_of(name) == case}
    changed = [
        f"  {name}: {difference(before.get(name, 'not there'), found.get(name, 'not there'))}"
        for name in sorted(before.keys() | found.keys())
        if name not in before or name not in found or not same(found[name], before[name])
    ]
    lines = [f"{section}: no longer what they were; that needs a reason in CHANGELOG.md", *changed]
    assert not changed, "\n".join(lines)


def difference(before, found):
    """Return what changed, in words. Of entries with names, only what differs."""
    if not (isinstance(before, dict) and isinstance(found, dict)):
        return f"{before} -> {found}"
    names = [name for name in before | found if before.get(name) != found.get(name)]
    return ", ".join(
        f"{name} ({before.get(name, 'not there')} -> {found.get(name, 'not there')})" for name in names
    )


def test_every_entry_of_the_file_is_compared(recorded):
    assert list(recorded) == list(SECTIONS)
    for section, of in SECTIONS.items():
        assert {case_of(name) for name in recorded[section]} == set(of.cases)


def written(content):
    """Return the text of the file, with a line for each entry."""
    sections = []
    for section, of_section in content.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(of_section.items())]
        sections.append(f" {json.dumps(section)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description="Write tests/data/bits.json again.")
    parser.add_argument("--without-torch", action="store_true", help="keep the entries that need torch")
    kept = parser.parse_args().without_torch
    if not (kept or importlib.util.find_spec("torch")):
        parser.error("torch is not installed. --without-torch keeps the entries that need it")
    before = json.loads(BITS.read_text()) if kept else {}
    content = {}
    for section, of in SECTIONS.items():
        skipped = of.of_torch if kept else set()
        old = before.get(section, {}).items()
        content[section] = {name: entry for name, entry in old if case_of(name) in skipped}
        for case in of.cases:
            if case not in skipped:
                content[section] |= entries(section, case)
    BITS.write_text(written(content))


if __name__ == "__main__":
    main()
