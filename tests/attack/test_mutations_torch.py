"""Files that were changed by chance, and what reads them with torch: loaders, trainings, exports."""

import pytest

pytest.importorskip("torch_geometric")

from attempts import outcomes
from catalogue import SPECIMENS
from test_mutations import root, told

__all__ = ["root"]

SAMPLE = range(10_000, 10_060)


def test_what_is_whole_is_read_by_all(root):
    for outcome in outcomes(root, range(-len(SPECIMENS), 0), "torch"):
        assert not outcome.problems, told(outcome)
        assert outcome.refused == 0


def test_a_sample_of_changed_files(root):
    wrong = [told(outcome) for outcome in outcomes(root, SAMPLE, "torch") if outcome.problems]
    assert not wrong, "\n\n".join(wrong)
