"""``save`` of a partition that knows its graph: a directory gets parts, without naming the graph again."""

import ast
import inspect
import os
import re
import textwrap
from operator import attrgetter

import numpy as np
import pytest

import fastpart as fp
from strategies import raw

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]], dtype=np.uint32)
X = np.arange(12, dtype=np.float32).reshape(6, 2)


@pytest.fixture
def graph(tmp_path):
    raw(tmp_path / "g.bin", EDGES)
    return fp.open_graph(tmp_path / "g.bin", num_vertices=6)


@pytest.mark.parametrize("make", [fp.spring, fp.algorithms.hdrf, fp.partition])
def test_a_directory_has_the_parts_of_the_graph_it_was_made_from(make, graph, tmp_path):
    p = make(graph, 2)
    p.save(tmp_path / "short", features=X)
    p.save(tmp_path / "long", graph=graph, features=X)
    for at, _, names in os.walk(tmp_path / "long"):
        for name in names:
            file = os.path.join(at, name)
            with open(file, "rb") as one, open(file.replace("long", "short"), "rb") as other:
                assert one.read() == other.read(), name
    assert len(fp.open_partition(tmp_path / "short").parts[0].vertices) > 0


def test_a_refined_and_an_updated_partition_know_theirs(graph, tmp_path):
    for make in (fp.refine, fp.update):
        made = make(graph, fp.spring(graph, 2))
        made.save(tmp_path / "parts", features=X)
        assert fp.open_partition(tmp_path / "parts").parts[1].features.shape[1] == 2


def test_without_its_graph_there_are_no_parts(graph, tmp_path):
    p = fp.spring(graph, 2)
    p.graph = None
    p.save(tmp_path / "parts")
    assert sorted(os.listdir(tmp_path / "parts")) == ["assignment.npy", "manifest.json"]
    with pytest.raises(
        fp.errors.ParameterError, match="features: needs graph=, since this partition does not know"
    ):
        p.save(tmp_path / "parts", features=X)


def test_a_graph_that_changed_since_is_named(graph, tmp_path):
    p = fp.spring(graph, 2)
    raw(tmp_path / "g.bin", EDGES[::-1])
    os.utime(tmp_path / "g.bin", ns=(0, 0))
    with pytest.raises(fp.errors.EdgeFileChangedError, match=r"g\.bin"):
        p.save(tmp_path / "parts", features=X)
    assert not (tmp_path / "parts").exists()
    p.save(tmp_path / "p.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), p.assignment)


def test_files_need_no_pass_over_the_graph_and_never_replace_it(graph, tmp_path):
    p = fp.spring(graph, 2)
    p.save(
        tmp_path / "p.txt",
        progress=lambda phase, done, total: pytest.fail(phase) if phase != "save" else None,
    )
    np.save(tmp_path / "g.npy", EDGES)
    with pytest.raises(fp.errors.ParameterError, match=r"out: .*g\.npy is the input"):
        fp.spring(fp.open_graph(tmp_path / "g.npy"), 2).save(tmp_path / "g.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "g.npy"), EDGES)


def test_the_star_leaves_builtins_and_modules_alone():
    names = {}
    exec("import random\nfrom fastpart import *", names)
    assert names["random"].__name__ == "random"
    assert "hash" not in names
    assert names["spring"] is fp.spring
    assert callable(fp.algorithms.hash)
    assert callable(fp.algorithms.random)


def test_dir_shows_what_is_public_and_nothing_else():
    assert dir(fp) == sorted(
        [
            *fp.__all__,
            "__version__",
            "algorithms",
            "datasets",
            "errors",
            "options",
            "pyg",
            "report",
            "typing",
        ]
    )
    assert len(dir(fp)) <= 40


def test_names_that_have_moved_say_where_they_are():
    for module, names in fp._MOVED.items():
        for name in names.split():
            with pytest.raises(
                AttributeError, match=rf"no attribute '{name}'\. It is fp\.{module}\.{name} now"
            ):
                getattr(fp, name)
            assert getattr(getattr(fp, module), name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("partiton", r"\. Did you mean fp\.partition\?"),
        ("Open_Graph", r"\. Did you mean fp\.open_graph\?"),
        ("hdfr", r"\. Did you mean fp\.algorithms\.hdrf\?"),
        ("communities", r"\. fp\.cluster\(graph\) finds clusters"),
        ("detect", r"\. fp\.cluster\(graph\) finds clusters"),
        ("plot", r"fp\.partition\(graph, k\)\.plot\(\)"),
        ("load", r"\. fp\.open_graph\(source\) opens a graph"),
        ("read", r"\. fp\.open_graph\(source\) opens a graph"),
        ("qqqq", r"\. dir\(fp\) lists its names"),
        ("train.smapled", r"\. Did you mean fp\.train\.sampled\?"),
        ("train.partition", r"\. It is fp\.partition$"),
        ("train.hdrf", r"\. It is fp\.algorithms\.hdrf$"),
        ("train.load", r"\. fp\.open_graph\(source\) opens a graph"),
        ("store.opne_partition", r"\. Did you mean fp\.store\.open_partition\?"),
        ("algorithms.hpe", r"\. Did you mean fp\.algorithms\.hep\?"),
        ("generate.rmatt", r"\. Did you mean fp\.generate\.rmat\?"),
        ("export.dlg", r"\. Did you mean fp\.export\.dgl\?"),
        ("datasets.coral", r"\. Did you mean fp\.datasets\.cora\?"),
        ("loading.Laoder", r"\. Did you mean fp\.loading\.[lL]oader\?"),
        ("report.drew", r"\. Did you mean fp\.report\.draw\?"),
        ("_partition", "no attribute '_partition'$"),
        ("store.__wrapped__", "no attribute '__wrapped__'$"),
    ],
)
def test_misspelt_names_and_words_that_users_try_say_what_to_use(name, text):
    *module, last = name.split(".")
    with pytest.raises(AttributeError, match=f"no attribute '{last}'") as refused:
        attrgetter(name)(fp)
    assert re.search(text, str(refused.value))
    assert str(refused.value).startswith(f"module '{'.'.join(['fastpart', *module])}'")


def test_what_suggestions_name_is_there():
    for text in fp._INSTEAD.values():
        for name in re.findall(r"\bfp\.([a-z_.]*[a-z])", text):
            assert callable(attrgetter(name)(fp)), name
    assert not set(fp._INSTEAD) & {*dir(fp), *" ".join(fp._MOVED.values()).split()}


def test_calling_the_module_of_trainings_says_what_to_call():
    with pytest.raises(
        TypeError, match=r"fp\.train is a module\. Call one of its methods, such as fp\.train\.sampled"
    ):
        fp.train("parts", model="gcn")


METHODS = [
    *(
        getattr(cls, name)
        for cls in (fp.VertexPartition, fp.EdgePartition)
        for name in ("save", "evaluate", "plot")
    ),
    *(getattr(fp.VertexPartition, name) for name in ("loader", "plan", "link_loader", "save_cache")),
    *(getattr(fp.typing.Evaluation, name) for name in ("save", "plot")),
    *(getattr(fp.typing.Comparison, name) for name in ("save", "plot", "report")),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__qualname__)
def test_bodies_use_all_parameters_of_their_methods(method):
    """One that a body does not pass on would be ignored in silence."""
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(method)))).body
    arguments = function.args
    names = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names |= {each.arg for each in (arguments.vararg, arguments.kwarg) if each}
    used = {node.id for each in function.body for node in ast.walk(each) if isinstance(node, ast.Name)}
    assert names - used == set()
