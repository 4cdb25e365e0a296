"""Cases of which every run of the tests tries some, and ``make soak`` all."""

import os
from itertools import cycle, product

import pytest
from hypothesis import settings

SEARCH = os.environ.get("HYPOTHESIS_PROFILE") == "search"
"""Whether properties look for new examples, as they do in ``make soak``."""

FOLD = 20
"""How many times more examples a search tries."""


def some_of(cases, always):
    """Return all cases as parameters, those that are not always tried with the mark for ``make soak``."""
    cases = list(cases)
    assert all(case in cases for case in always)
    return [
        case if case in always else soak(*(case if isinstance(case, tuple) else [case])) for case in cases
    ]


def soak(*case):
    """Return a case with the mark for ``make soak``."""
    return pytest.param(*case, marks=pytest.mark.soak)


def diagonal(first, second):
    """Return each of the first, each with one of the second in turn."""
    return list(zip(first, cycle(second), strict=False))


PAIRS = pytest.mark.parametrize("pairs", [diagonal, soak(product)])
"""For tests of real graphs: which pairs they take of graphs and numbers of parts, in every run and in ``make soak``."""


def examples(number):
    """Let a property try so many examples in every run, and ``FOLD`` times as many in a search."""
    return settings(max_examples=number * (FOLD if SEARCH else 1))
