"""The options of every long call, documented and checked in one place.

A function takes them as ``**options: Unpack[Options]`` under the decorator :func:`with_options`, and passes them on as
``**options``. The decorator adds the values of :func:`config`, checks all values, and shows the bar.
"""

import functools
import inspect
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypedDict, Unpack, overload

from ..errors import ParameterError
from .calls import Boundary, Function, refuse_misuse
from .notes import Display
from .option_groups import (
    OBJECTS,
    Accepts,
    OptionGroup,
    Taken,
    Within,
    described,
    documented,
    parameters_of,
)
from .parameters import Progress, StrPath, meant, memory_size, path, shown


class Options(TypedDict, total=False):
    """The options of every long call. None of them changes a result. See also :func:`fastpart.config`.

    There is one exception: :func:`fastpart.algorithms.hep` with ``tau="fit"`` fits its ``tau`` to the memory limit.

    Attributes
    ----------
    threads : int, optional
        Number of threads. Default (None or 0): as many as the process may use.
    tmp_dir : path, optional
        Folder of temporary files. Default: the system's. Nothing is left of them. On a file system in memory, such as
        ``/dev/shm``, they count against the memory limit.
    progress : bool or callable, optional
        True shows a bar with the time left, on stderr or in a notebook. A callable is called as ``progress(phase, done,
        total)`` about every 50 ms. An exception in it cancels the run. Default: in a notebook a bar for each step
        that takes longer than half a second, and the rows of epochs, else nothing.
    memory_limit : int or str, optional
        Bytes, or a size such as "4G". Default: 80 % of the available memory (of the control group, if that is less).
    """

    threads: int | None
    tmp_dir: StrPath | None
    progress: Progress | bool | None
    memory_limit: int | str | None


def _limit(name: str, value: Any) -> int | None:
    return memory_size(value, name)


def _callback(name: str, value: Any) -> Progress | None:
    if value is None or value is False:
        return None
    if not callable(value):
        raise TypeError(
            f"{name}: expected True, False or a callable(phase, done, total), got {type(value).__name__}"
        )
    return value  # type: ignore[no-any-return]


def _folder(name: str, value: Any) -> Path | None:
    folder = None if value is None else path(name, value)
    if folder is not None and not folder.is_dir():
        raise ParameterError(f"{name}: {shown(folder)} is not a directory")
    return folder


@dataclass(frozen=True)
class RunOptions(OptionGroup):
    """The options as the core takes them."""

    together: ClassVar = {"run": "threads tmp_dir progress memory_limit"}
    threads: Annotated[int, Within(0, 1 << 63)] | None = None
    tmp_dir: Annotated[Path | None, Accepts(StrPath | None, _folder)] = None
    progress: Annotated[Progress | None, Accepts(Progress | bool | None, _callback)] = None
    memory_limit: Annotated[int | None, Accepts(int | str | None, _limit)] = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Check the options among the arguments of a call. Missing ones come from :func:`config`."""
        return cls.checked({**_CONFIG.get(Options()), **given})

    @property
    def run(self) -> "RunOptions":
        """These options without those of a subclass."""
        return RunOptions(self.threads, self.tmp_dir, self.progress, self.memory_limit)


def run_options(**given: Unpack[Options]) -> RunOptions:
    """Check the options of a call."""
    return RunOptions.checked(given)


NAMES = tuple(Options.__annotations__)
"""Names of the entries of :class:`Options`."""

_CONFIG: ContextVar[Options] = ContextVar("fastpart.config")


def config(**options: Unpack[Options]) -> AbstractContextManager[None]:
    """Set options for all calls in a ``with`` block. Arguments of a call take precedence.

    Blocks may be nested. A block belongs to its thread or asyncio task, as context variables do.

    Parameters
    ----------
    threads, tmp_dir, progress, memory_limit
        As in :class:`Options`.

    Raises
    ------
    TypeError
        Another name. Parameters that change a result, such as a seed or a balance, must be given to each call.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> with fp.config(threads=2, memory_limit="1G"):
    ...     p = fp.spring(np.array([[0, 1], [1, 2], [2, 0]]), k=2)
    """
    if foreign := [name for name in options if name not in NAMES]:
        close = meant(foreign[0], NAMES) or f". Pass {foreign[0]!r} to each call that takes it"
        raise TypeError(f"config() takes only {', '.join(NAMES)}{close}")
    with Boundary(config, options):
        run_options(**(options | {"progress": None} if options.get("progress") is True else options))
    return _configured(options)


@contextmanager
def _configured(options: Options) -> Iterator[None]:
    token = _CONFIG.set({**_CONFIG.get(Options()), **options})
    try:
        yield
    finally:
        _CONFIG.reset(token)


@overload
def with_options(function: Function, without: Mapping[str, str] | None = None) -> Function: ...
@overload
def with_options(function: Function, *, groups: Sequence[type[OptionGroup]]) -> Function: ...
@overload
def with_options(*, groups: Sequence[type[OptionGroup]]) -> Callable[[Function], Function]: ...
def with_options(
    function: Any = None,
    without: Mapping[str, str] | None = None,
    *,
    groups: Sequence[type[OptionGroup]] = (),
) -> Any:
    """Decorate a function that takes ``**options: Unpack[Options]``.

    A call looks up :func:`config`, checks the options before anything else, and clears the bar in the end, also after
    an error. An unknown name is refused with the list of valid ones. ``inspect.signature`` lists the options one by
    one. ``without`` names parameters of other functions that this one does not take, and says why. ``groups`` say which
    parameters users may pass in objects of :mod:`fastpart.options`, and describe those that the docstring does not.
    """
    if function is None:
        return functools.partial(with_options, groups=groups)
    known = inspect.signature(function)
    named = [
        each
        for each in known.parameters.values()
        if each.kind is not Parameter.VAR_KEYWORD
        and not (each.name in OBJECTS and each.kind is Parameter.KEYWORD_ONLY)
    ]
    if any(each.kind is Parameter.VAR_KEYWORD for each in known.parameters.values()):
        named += entries_of(Options)
    taken = Taken.of(function.__name__, known.replace(parameters=named), groups)
    runs = [name for name in NAMES if name in taken.flat.parameters]

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        with Display() as display, Boundary(call, given):
            flat = taken.spread(given, without)
            refuse_misuse(function.__name__, taken.whole, args, flat, without)
            wanted = {**_CONFIG.get(Options()), **flat}
            options = {name: wanted[name] for name in runs if name in wanted}
            run = RunOptions.checked(options | {"progress": display.progress(options.get("progress"))})
            return function(*args, **flat | {name: getattr(run, name) for name in runs})

    doc = function.__doc__
    for group in groups:
        doc = inspect.cleandoc(doc or "")
        doc = documented(doc, group, taken.flat.parameters.keys() - described(doc))
    return _presented(call, taken, doc)


def taking(
    group: type[OptionGroup],
    *,
    defaults: Mapping[str, Any] | None = None,
    without: Mapping[str, str] | None = None,
    groups: Sequence[type[OptionGroup]] = (),
) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function whose parameter ``options`` is a group. Users pass the fields of the group by name.

    Wrong names, values and numbers of arguments are refused before the function is called. Its signature and its
    docstring list the fields one by one. A parameter of the function itself takes the place of a field of its name.

    Parameters
    ----------
    group : type
        The group.
    defaults : mapping, optional
        Defaults that are not those of the group.
    without : mapping, optional
        Fields that the function does not take, and why, or an empty text.
    groups : sequence of type, optional
        Groups that say which other parameters of the function users may pass in objects of :mod:`fastpart.options`.
    """
    usual, missing = defaults or {}, without or {}
    runs = issubclass(group, RunOptions)

    def decorate(function: Callable[..., Any]) -> Any:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.name != "options"]
        taken = parameters_of(group, usual, {*missing, *signature.parameters})
        for each in entries_of(Options):
            if runs and each.name in taken:
                taken[each.name] = each
        known = Taken.of(
            function.__name__, signature.replace(parameters=[*own, *taken.values()]), (group, *groups)
        )

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            with Display() as display, Boundary(call, given):
                given = known.spread(given, missing)
                refuse_misuse(function.__name__, known.whole, args, given, missing)
                mine = {name: value for name, value in given.items() if name not in taken}
                wanted = {**usual, **{name: value for name, value in given.items() if name in taken}}
                if runs:
                    usually = {name: value for name, value in _CONFIG.get(Options()).items() if name in taken}
                    wanted = {**usually, **wanted}
                if "progress" in taken:
                    wanted["progress"] = display.progress(wanted.get("progress"))
                options = group.checked(wanted)
                if "given" in vars(options):  # as functions want it that note how they were called
                    options = replace(options, given=given)  # type: ignore[call-arg]
                return function(*args, **mine, options=options)

        doc = inspect.getdoc(function) or ""
        return _presented(call, known, documented(doc, group, taken), described(doc, remarks=True) - {*NAMES})

    return decorate


def _presented(call: Any, taken: Taken, doc: str | None, own: Container[str] = ()) -> Any:
    """Return a function with its signature and docstring for users, and the record of its keywords."""
    call.taken, call.full_doc = taken, doc
    call.__signature__ = taken.shown
    call.__doc__ = doc if doc is None else taken.documented(doc, own)
    return call


def entries_of(entries: Any) -> list[Parameter]:
    """Return keyword parameters for the entries of a typed dictionary. None is the default of all."""
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in entries.__annotations__.items()
    ]
