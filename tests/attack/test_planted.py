"""Links, pipes, devices and folders in the place of files: a command ends soon, and leaves the user's files alone."""

import tempfile
from pathlib import Path
from random import Random

import pytest
from plants import Child, numbers
from verbs import COMMANDS

from soaked import some_of

SAMPLE = sorted(Random(1).sample(list(numbers(torch=False)), 8))
"""The commands that are tried with some of their cases. ``benches/planted.py`` tries all."""

CASES = 3, 12
"""Cases of a command, in every run and in ``make soak``."""


@pytest.fixture(scope="module")
def child():
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        child = Child(Path(folder, "root"), torch=False)
        yield child
        child.close()


@pytest.mark.parametrize("most", some_of(CASES, CASES[:1]))
@pytest.mark.parametrize("number", SAMPLE, ids=lambda number: COMMANDS[number].name)
def test_a_command_ends_soon_and_leaves_the_users_files(child, number, most):
    cases = child.cases(number)
    chosen = Random(number).sample(cases, min(most, len(cases)))
    told = {str(case): child.wrong(case) for case in chosen}
    wrong = [f"{case}: {text}" for case, text in told.items() if text]
    again = f'Run `python benches/planted.py --command "{COMMANDS[number].words}"`'
    assert not wrong, "\n".join([*wrong, again])
