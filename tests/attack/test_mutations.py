"""Files that were changed by chance: every reader reads or refuses them, and says why in a named exception."""

import tempfile
from pathlib import Path

import pytest
from attempts import Outcome, outcomes
from catalogue import SPECIMENS

from soaked import some_of

SAMPLE, MORE = range(60), range(60, 200)
"""The cases that every run tries, and those of ``make soak``. ``benches/mutations.py`` tries thousands."""


@pytest.fixture(scope="module")
def root():
    """A folder for the specimens, in memory where there is such a place: all that is written is synchronised."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def told(outcome: Outcome) -> str:
    return "\n".join(
        f"{found['reader']}: {found['what']} at {found['where']}. "
        f"`python benches/mutations.py --case {outcome.number}` "
        f"({outcome.specimen}/{outcome.file}: {outcome.told})\n{found['text']}"
        for found in outcome.problems
    )


@pytest.mark.parametrize("first", some_of([-1, -2], [-1]))
def test_what_is_whole_is_read_by_all(root, first):
    for outcome in outcomes(root, range(first, -len(SPECIMENS) - 1, -2), "others"):
        assert not outcome.problems, told(outcome)
        assert outcome.refused == 0


@pytest.mark.parametrize("sample", some_of([SAMPLE, MORE], [SAMPLE]), ids=str)
def test_a_sample_of_changed_files(root, sample):
    wrong, refused, read = [], 0, 0
    for outcome in outcomes(root, sample, "others"):
        wrong += [told(outcome)] if outcome.problems else []
        refused, read = refused + outcome.refused, read + outcome.read
    assert not wrong, "\n\n".join(wrong)
    assert min(refused, read) > len(sample) / 4
