"""Cases of which every run of the tests tries some, and ``make soak`` all."""

import os

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
        case
        if case in always
        else pytest.param(*(case if isinstance(case, tuple) else [case]), marks=pytest.mark.soak)
        for case in cases
    ]


def examples(number):
    """Let a property try so many examples in every run, and ``FOLD`` times as many in a search."""
    return settings(max_examples=number * (FOLD if SEARCH else 1))
