"""Wrong calls of public functions are refused in one form, whichever function it is."""

import importlib
import inspect
import warnings

import numpy as np
import pytest

import fastpart as fp

MODULES = (
    "",
    "train",
    "algorithms",
    "report",
    "typing",
    "loading",
    "export",
    "generate",
    "datasets",
    "pyg",
    "store",
    "compat.networkx",
    "compat.pymetis",
)


def methods_of(owner):
    """Yield the public methods of a class, with documentation of their parameters."""
    for name in dir(owner):
        method = inspect.getattr_static(owner, name)
        method = getattr(method, "__func__", method)  # of a class method
        if (
            inspect.isfunction(method)
            and not name.startswith("_")
            and "Parameters\n" in (method.__doc__ or "")
        ):
            yield name, getattr(owner, name)


def public():
    """Return all public functions and documented methods by their names."""
    found = {}
    for module in MODULES:
        try:
            holder = importlib.import_module(f"fastpart.{module}".rstrip("."))
            each = {name: getattr(holder, name) for name in holder.__all__}
        except ImportError:  # torch or PyG is not installed
            continue
        for name, value in each.items():
            if inspect.isclass(value) and not issubclass(value, BaseException | dict):
                found |= {f"{name}.{method}": function for method, function in methods_of(value)}
            elif callable(value) and not inspect.isclass(value):
                found[f"{module}.{name}".lstrip(".")] = value
    return found


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyG warns
    PUBLIC = public()


def refusal(function, *args, **given):
    with pytest.raises(TypeError) as caught:
        function(*args, **given)
    return str(caught.value)


def parameters_of(function):
    return [
        each for each in inspect.signature(function).parameters.values() if each.name not in ("self", "cls")
    ]


def takes_any(function):
    """Return whether a function passes what it does not know on to another one."""
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters_of(function))


@pytest.mark.parametrize(
    "name", [name for name in PUBLIC if name != "config" and not takes_any(PUBLIC[name])]
)
def test_an_unknown_parameter_is_refused_with_a_list(name):
    function = PUBLIC[name]
    known = ", ".join(each.name for each in parameters_of(function)) or "none"
    text = refusal(function, nobody_knows_this=1)
    called = name.rpartition(".")[2]
    assert text == f"{called}() has no parameter 'nobody_knows_this'. Its parameters: {known}"


RING = np.array([[v, (v + 1) % 6] for v in range(6)])


@pytest.fixture
def stored(tmp_path):
    fp.VertexPartition([0, 0, 0, 1, 1, 1], k=2).save(tmp_path / "parts", graph=RING)
    return fp.open_partition(tmp_path / "parts")


def test_methods_say_what_is_wrong_with_a_call(stored):
    assert refusal(stored.loader, fanout=[5]) == "loader() has no parameter 'fanout'. Did you mean 'fanouts'?"
    assert refusal(stored.plan, cache="2G", fanouts=[2]).endswith("Did you mean 'memory'?")
    text = "loader() takes by position only vertices. Pass the others by name, such as fanouts="
    assert refusal(stored.loader, "train", [5, 5]) == text
    assert refusal(stored.link_loader, "train") == "link_loader() needs 'fanouts'. Pass fanouts="
    assert refusal(stored.save_cache, 0.1) == "save_cache() needs 'fanouts'. Pass fanouts="
    text = "save_cache() got 'cache' by position and by name. Pass it once"
    assert refusal(stored.save_cache, 0.1, cache=0.2, fanouts=[1]) == text
    assert refusal(fp.spring) == "spring() needs 'graph'. Pass graph="
