"""The registry of training methods: those of :mod:`.methods` and those that users add. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any, TypeVar, cast

from ..core.calls import called_well
from ..core.options import taking
from ..core.parameters import Of, choice
from ..errors import ParameterError
from ..runtime.environment import found
from .options import TrainOptions, methods_of
from .plugged import import_torch, refuse_nested

Function = TypeVar("Function", bound=Callable[..., Any])

METHODS = (
    "full",
    "sampled",
    "bytegnn",
    "armada",
    "distdgl",
    "sdt",
    "distgnn",
    "sancus",
    "links",
    "edges",
    "embeddings",
)
"""The names of the methods that come with fastpart."""


@dataclass(eq=False)
class Method:
    """A training method: its parameters, and the classes that train. Those are named by ``module:Class``.

    Attributes
    ----------
    name : str
        Its name.
    options : type
        The class of its parameters.
    driver : str
        A :class:`fastpart.train.jobs.driver.Driver`, which checks a training, states its memory and starts the workers.
        distdgl has one of its own.
    worker : str
        A :class:`fastpart.train.jobs.job.Worker`, which trains in each process.
    types : bool
        Whether it trains over graphs with types.
    result : str, optional
        A function that returns the result of a training that :func:`fastpart.train.open` opens, from what all methods
        return and from what the folder notes. Default: what all methods return.
    network : str, optional
        A function that returns from these notes what makes the network. Default: that of models of vertices.
    over : {"vertices", "edges"} or None
        The items of the parts that it trains over. None: it ignores them.
    defaults : mapping
        Defaults of parameters that are not those of all methods.
    without : mapping
        Parameters of other methods that it does not take, and why, or an empty text.
    compared : bool
        Whether :func:`fastpart.train.compare` knows it.
    launched : bool
        Whether processes of a launcher, such as torchrun or Ray, can be its workers.
    per_part : bool
        Whether it has one worker for each part.
    function : callable
        What users call, decorated with :meth:`keywords`.
    """

    name: str
    options: type[TrainOptions]
    driver: str
    worker: str = ""
    types: bool = False
    result: str = ""
    network: str = ""
    over: Of | None = "vertices"
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    without: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    compared: bool = True
    launched: bool = True
    per_part: bool = False
    function: Callable[..., Any] = field(init=False)

    def keywords(self, function: Function) -> Function:
        """Decorate the function of the method. Users pass its parameters by name, and it gets checked options."""
        self.function = taking(self.options, defaults=self.defaults, without=self.without)(function)
        return cast(Function, self.function)

    def train(self, source: Any, options: TrainOptions) -> Any:
        """Train over a partition directory, and return the result."""
        refuse_nested()
        import_torch()
        trained = loaded(self.driver)(self, source, options).train()
        ranks = found()
        if ranks is None or ranks.rank == 0:
            for end in methods_of(options.callbacks, "on_end"):
                end(trained)
        return trained


_REGISTERED: dict[str, Method] = {}


@called_well
def register(method: Method) -> None:
    """Make a method of your own known to what takes the name of a method, such as :func:`fastpart.train.compare`."""
    if method.name in METHODS:
        raise ParameterError(f"method: {method.name} comes with fastpart. Choose another name")
    _REGISTERED[method.name] = method


def of(name: str) -> Method:
    """Return a method by its name."""
    if name in METHODS:
        known: Method = import_module(f"{__package__}.methods.{name}").METHOD
        return known
    return _REGISTERED[choice("method", name, names())]


def names() -> tuple[str, ...]:
    """Return the names of all methods."""
    return (*METHODS, *_REGISTERED)


def loaded(name: str) -> Any:
    """Return what ``module:name`` names."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
