"""Groups of options: what a field accepts, how groups are put together, and what a function under ``taking`` shows."""

import inspect
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.core.option_groups import FOUND, Accepts, Count, OptionGroup, Size, Within, parameters_of
from fastpart.core.options import RunOptions, taking


def half(name, value):
    if value % 2:
        raise fp.errors.ParameterError(f"{name}: {value} is odd")
    return value // 2


@dataclass(frozen=True, kw_only=True)
class Rows(OptionGroup):
    """Rows.

    Parameters
    ----------
    rows : int
        How many.
    kind : {"a", "b"}, optional
        Which.
    """

    rows: Count = 3
    kind: Literal["a", "b"] | None = None
    pairs: Annotated[int, Accepts(int, half)] = 1
    room: Size = None

    def __post_init__(self):
        super().__post_init__()
        if self.rows == 13:
            raise fp.errors.ParameterError("rows: 13 is not one of ours")


@dataclass(frozen=True, kw_only=True)
class Work(Rows, RunOptions):
    """Work.

    Parameters
    ----------
    share : int
        A share.
    """

    share: Annotated[int, Within(0, 9)] = 4
    found: Annotated[int, FOUND] = 0
    given: Annotated[dict, FOUND] = None


@taking(Work, defaults={"rows": 5}, without={"kind": "it has one kind", "pairs": ""})
def work(source, *, first=1, options):
    """Work on a source.

    Parameters
    ----------
    source : path
        A source.
    first : int
        The first.
    rows
        Here they are long.
    """
    return source, first, options


def test_a_function_gets_one_checked_object():
    source, first, options = work("s", first=2, share=7, room="2K", threads=1)
    assert (source, first, options.share, options.rows, options.room, options.threads) == (
        "s",
        2,
        7,
        5,
        2048,
        1,
    )
    assert options.given == {"first": 2, "share": 7, "room": "2K", "threads": 1}
    assert options.run == RunOptions(threads=1)
    with fp.config(threads=2):
        assert work("s")[2].threads == 2
        assert work("s", threads=3)[2].threads == 3


def test_it_shows_the_fields_it_takes():
    known = inspect.signature(work).parameters
    assert list(known) == [
        *("source", "first", "share", "rows", "room"),
        *("threads", "tmp_dir", "progress", "memory_limit", "run"),
    ]
    assert known["rows"].default == 5
    assert (known["room"].annotation, known["rows"].annotation) == (int | str | None, int)
    text = work.__doc__.partition("Parameters\n")[2]
    assert text.count("rows") == 1
    assert "How many.\n    Here they are long." in text.replace("\n        ", "\n    ")
    assert "kind" not in text


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"rows": 0}, fp.errors.ParameterError, "rows: 0 is not between 1 and "),
        ({"rows": True}, TypeError, "rows: expected an integer, got bool"),
        ({"rows": 13}, fp.errors.ParameterError, "rows: 13 is not one of ours"),
        ({"share": 10}, fp.errors.ParameterError, "share: 10 is not between 0 and 9"),
        ({"room": "2 dogs"}, fp.errors.ParameterError, "room: '2 dogs' is not a size"),
        ({"kind": "a"}, TypeError, r"work\(\) has no parameter 'kind': it has one kind"),
        ({"pairs": 2}, TypeError, r"work\(\) has no parameter 'pairs'. Its parameters: "),
        ({"found": 2}, TypeError, r"work\(\) has no parameter 'found'"),
        ({"rwos": 2}, TypeError, r"work\(\) has no parameter 'rwos'. Did you mean 'rows'\?"),
        ({"threads": -1}, fp.errors.ParameterError, "threads: -1 is not between"),
        ({"tmp_dir": "/nowhere"}, fp.errors.ParameterError, "tmp_dir: /nowhere is not a directory"),
        ({"progress": 3}, TypeError, "progress: expected True, False or a callable"),
    ],
)
def test_what_is_wrong_is_refused_by_its_name(wrong, error, text):
    with pytest.raises(error, match=f"^{text}"):
        work("s", **wrong)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "rows": st.integers(1, 12),
            "kind": st.sampled_from(["a", "b", None]),
            "pairs": st.integers(0, 9).map(lambda each: 2 * each),
            "share": st.integers(0, 9),
            "other": st.integers(),
        },
    )
)
def test_checked_is_the_given_values_over_the_defaults(values):
    expected = {"rows": 3, "kind": None, "pairs": 1, "share": 4} | values
    if "pairs" in values:
        expected["pairs"] //= 2
    expected.pop("other", None)
    found = Work.checked(values)
    assert {name: getattr(found, name) for name in expected} == expected


def test_all_groups_accept_their_own_defaults():
    kinds, seen = [OptionGroup], 0
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        defaults = {name: each.default for name, each in parameters_of(kind, {}).items()}
        if "pairs" not in defaults:
            assert kind.checked(defaults) == kind()
            seen += 1
    assert seen > 1
