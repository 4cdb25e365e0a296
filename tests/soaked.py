"""Cases of which every run of the tests tries some, and ``make soak`` all."""

import pytest


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
