"""Stub files: what they say of functions under `taking`, and that they are those that `make stubs` writes."""

import ast
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy.typing as npt
import pytest
from stubs import FILES, PACKAGE, stub_file

from fastpart.core.option_groups import FOUND, Count, OptionGroup, Size
from fastpart.core.options import RunOptions, taking
from fastpart.core.parameters import StrPath

Fanouts = Sequence[int] | Mapping[str, Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class Steps(OptionGroup):
    """What steps take."""

    way: Literal["uniform", "last"] | None = None
    fanouts: Fanouts | None = None
    folder: StrPath | None = None
    count: Count = 4
    memory: Size = None
    found: Annotated[int, FOUND] = 0


@dataclass(frozen=True, kw_only=True)
class LongSteps(Steps, RunOptions):
    """Steps that take long."""


class Stored:
    @taking(Steps, defaults={"count": 2}, without={"folder": ""})
    def steps(self, of: "npt.ArrayLike", *, options: Steps) -> "Sequence[Any]": ...


@taking(LongSteps)
def all_steps(*of: "str", options: LongSteps) -> "Path | None":
    from pathlib import Path

    return Path()


def test_annotations_are_those_that_users_see():
    text = stub_file([all_steps, Stored.steps], ["LIMIT: int"])
    assert (
        text
        == inspect.cleandoc(
            """
        # Written by `make stubs`. Do not edit.
        from collections.abc import Sequence
        from pathlib import Path
        from typing import Any, Literal, Unpack

        import numpy.typing as npt
        from test_stubs import Fanouts

        from fastpart.core.options import Options
        from fastpart.core.parameters import StrPath
        from fastpart.options import Run

        LIMIT: int
        def all_steps(
            *of: str,
            way: Literal["uniform", "last"] | None = None,
            fanouts: Fanouts | None = None,
            folder: StrPath | None = None,
            count: int = 4,
            memory: int | str | None = None,
            run: Run | None = None,
            **options: Unpack[Options],
        ) -> Path | None: ...

        class Stored:
            def steps(
                self,
                of: npt.ArrayLike,
                *,
                way: Literal["uniform", "last"] | None = None,
                fanouts: Fanouts | None = None,
                count: int = 2,
                memory: int | str | None = None,
            ) -> Sequence[Any]: ...
        """
        )
        + "\n"
    )


@pytest.mark.parametrize("name", FILES)
def test_a_stub_is_what_the_generator_writes(name):
    """`make stubs` writes it anew."""
    found = (PACKAGE / name).read_text()
    assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(FILES[name]()))
