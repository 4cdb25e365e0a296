"""Objects of options: long functions take some, and a call with them is the call with their fields as keywords."""

import copy
import dataclasses
import inspect
import json
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp
from fastpart import options
from fastpart.core.calls import full_signature
from fastpart.core.option_groups import MOST, OBJECTS, OptionObject, entries_of, split
from test_calls import PUBLIC

LONG = {name: function for name, function in PUBLIC.items() if getattr(function, "taken", None) is not None}
"""Public functions with options."""

RING = np.array([[v, (v + 1) % 40] for v in range(40)])


def keywords_of(signature):
    """Return the names of the parameters that users pass."""
    return [
        each.name
        for each in signature.parameters.values()
        if each.name not in ("self", "cls") and each.kind is not inspect.Parameter.VAR_KEYWORD
    ]


@pytest.mark.parametrize("name", PUBLIC)
def test_no_public_function_has_more_keywords_than_fit_a_page(name):
    shown = keywords_of(inspect.signature(PUBLIC[name]))
    assert len(shown) <= MOST == 16


@pytest.mark.parametrize("name", LONG)
def test_what_is_not_in_the_signature_is_in_an_object(name):
    function = LONG[name]
    shown, flat = keywords_of(inspect.signature(function)), keywords_of(full_signature(function))
    hidden = set(flat) - set(shown)
    assert hidden == function.taken.hidden
    assert set(shown) - set(flat) == set(function.taken.objects)
    assert [each for each in shown if each in flat] == [each for each in flat if each in shown]
    for kind, held in function.taken.objects.items():
        assert set(held) <= set(object_of(kind).__dataclass_fields__)
    assert hidden <= set().union(*function.taken.objects.values())
    by_any = inspect.Parameter.VAR_KEYWORD in {
        each.kind for each in inspect.signature(function).parameters.values()
    }
    assert by_any == bool(hidden)


def test_all_functions_that_were_long_take_objects():
    long = {name for name, function in LONG.items() if len(keywords_of(full_signature(function))) > MOST}
    assert {
        "VertexPartition.save", "VertexPartition.loader", "VertexPartition.link_loader", "VertexPartition.plan",
        "compare", "convert", "partition", "multilevel", "refine", "update", "sigma",
    } <= long  # fmt: skip
    assert all(LONG[name].taken.objects for name in long)


def object_of(kind):
    return getattr(options, kind.capitalize())


@pytest.mark.parametrize("name", LONG)
def test_help_names_every_keyword_once(name):
    function = LONG[name]
    entries = dict(entries_of(split(inspect.getdoc(function))[1]))
    named = [each for line in entries for each in line.partition(" :")[0].split(", ")]
    assert len(set(named)) == len(named)
    assert set(keywords_of(inspect.signature(function))) <= set(named)
    for kind, held in function.taken.objects.items():
        text = " ".join(entries[f"{kind} : fastpart.options.{kind.capitalize()}, optional"].split())
        assert text.startswith(OBJECTS[kind])
        inside = re.search(r": ([\w, ]*)\.$", text)[1].split(", ")
        assert inside == [each for each in held if each in function.taken.hidden] or inside == held


@pytest.mark.torch
def test_the_parameters_of_a_training_fit_a_page():
    pytest.importorskip("torch")
    _, section, _ = split(inspect.getdoc(fp.train.sampled))
    assert len(section.splitlines()) <= 64


def test_every_object_describes_its_fields_once():
    assert sorted(OBJECTS) == sorted(name.lower() for name in options.__all__)
    for name in options.__all__:
        kind = getattr(options, name)
        entries = [line.partition(" :")[0] for line, _ in entries_of(split(inspect.getdoc(kind))[1])]
        assert sorted(", ".join(entries).split(", ")) == sorted(kind.__dataclass_fields__)
        assert all(text.strip() for _, text in entries_of(split(inspect.getdoc(kind))[1]))


def test_an_object_is_frozen_and_holds_what_was_given():
    fetching = options.Fetching(cache=0.2, io=None)
    assert (
        repr(fetching) == "Fetching(cache=0.2, io=None)" or repr(fetching) == "Fetching(io=None, cache=0.2)"
    )
    assert fetching.given == {"io": None, "cache": 0.2}
    assert fetching == options.Fetching(io=None, cache=0.2) != options.Fetching(cache=0.2)
    assert isinstance(fetching, OptionObject)
    with pytest.raises(dataclasses.FrozenInstanceError):
        fetching.cache = 0.3
    for same in (pickle.loads(pickle.dumps(fetching)), copy.deepcopy(fetching)):
        assert same == fetching
        assert same.given == fetching.given
    assert dataclasses.replace(fetching, cache=0.3).given == {"io": None, "cache": 0.3}


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            {"balance": 1.1, "bounds": options.Bounds(balance=1.1)},
            "balance: it is also in bounds. Leave out balance=, or take it out of bounds",
        ),
        (
            {"connected": True, "bounds": options.Bounds(connected=True)},
            "connected: it is also in bounds. Leave out connected=, or take it out of bounds",
        ),
        (
            {"bounds": options.Run(threads=1)},
            "bounds: expected a fastpart.options.Bounds, got Run. Pass fp.options.Bounds(balance=...)",
        ),
        (
            {"bounds": {"balance": 1.1}},
            "bounds: expected a fastpart.options.Bounds, got dict. Pass fp.options.Bounds(balance=...)",
        ),
        (
            {"run": options.Run(workers=2)},
            "multilevel() has no parameter 'workers': leave it out of run",
        ),
        ({"bunds": options.Bounds()}, "multilevel() has no parameter 'bunds'. Did you mean 'bounds'?"),
    ],
)
def test_what_is_wrong_with_an_object_is_refused(wrong, text):
    with pytest.raises(TypeError) as caught:
        fp.multilevel(RING, 2, **wrong)
    assert str(caught.value) == text


def test_a_field_with_another_meaning_is_refused(stored, tmp_path):
    text = r"^out: save\(\) does not take it in run\. Pass out= by itself$"
    with pytest.raises(TypeError, match=text):
        stored.save(tmp_path / "parts", run=options.Run(out=tmp_path / "other"))
    with pytest.raises(TypeError, match=r"^time_limit: compare\(\) does not take it in run"):
        fp.compare(RING, 2, ["spring"], run=options.Run(time_limit=1.0))
    run = options.Run(threads=1)
    assert len(fp.compare(RING, 2, ["spring"], run=run, peers=False).summary) == 1


def test_an_unknown_field_is_refused_where_it_is_written():
    with pytest.raises(TypeError, match=r"^Fetching\(\) has no parameter 'cach'\. Did you mean 'cache'\?$"):
        options.Fetching(cach=0.2)
    with pytest.raises(TypeError, match="by position"):
        options.Fetching(0.2)


def test_values_in_objects_are_refused_as_keywords_are():
    with pytest.raises(fp.errors.ParameterError) as by_name:
        fp.multilevel(RING, 2, sizes=[1.0])
    with pytest.raises(fp.errors.ParameterError) as in_object:
        fp.multilevel(RING, 2, bounds=options.Bounds(sizes=[1.0]))
    assert str(in_object.value) == str(by_name.value)
    assert in_object.value.parameter == "sizes"
    assert "min_balance" in fp.multilevel.taken.hidden
    with pytest.raises(fp.errors.ParameterError) as hidden:
        fp.multilevel(RING, 2, bounds=options.Bounds(min_balance=7.0))
    assert len(hidden.traceback) == len(by_name.traceback) <= 4
    with pytest.raises(TypeError, match=r"^predict_traffic\(\) got 'fanouts' by position and by name"):
        fp.predict_traffic("parts", [5], batches=options.Batches(fanouts=[5]))


BOUNDS = st.fixed_dictionaries(
    {},
    optional={
        "balance": st.sampled_from([1.0, 1.1, 1.5]),
        "volume_balance": st.sampled_from([None, 1.2, 2.0]),
        "balance_on": st.sampled_from([None, np.arange(40) % 3]),
        "connected": st.booleans(),
        "sizes": st.sampled_from([None, [1.0, 2.0, 1.0]]),
        "on_infeasible": st.just("warn"),
    },
)


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
@given(BOUNDS, st.integers(0, 3), st.sets(st.sampled_from(["balance", "connected", "sizes"])))
@settings(max_examples=25)
def test_a_call_with_an_object_is_the_call_with_its_fields(values, seed, outside):
    plain = fp.multilevel(RING, 3, seed=seed, **values)
    beside = {name: values[name] for name in outside & set(values)}
    inside = {name: value for name, value in values.items() if name not in beside}
    held = fp.multilevel(RING, 3, seed=seed, bounds=options.Bounds(**inside), **beside)
    np.testing.assert_array_equal(held.assignment, plain.assignment)
    assert held.parameters == plain.parameters


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    labels = np.arange(40) // 20
    data = options.Data(
        features=np.eye(40, dtype=np.float32),
        labels=labels,
        splits={"train": np.arange(0, 40, 2), "val": [1, 5, 21], "test": [3, 23]},
        halo_hops=2,
    )
    return fp.VertexPartition(labels, k=2).save(
        tmp_path_factory.mktemp("run") / "parts", graph=RING, data=data
    )


def test_save_takes_its_data_in_one_object(stored, tmp_path):
    same = stored.save(
        tmp_path / "parts",
        graph=RING,
        features=np.eye(40, dtype=np.float32),
        labels=np.arange(40) // 20,
        splits={"train": np.arange(0, 40, 2), "val": [1, 5, 21], "test": [3, 23]},
        halo_hops=2,
    )
    assert same.manifest["halo_hops"] == 2
    for mine, other in zip(same.parts, stored.parts, strict=True):
        np.testing.assert_array_equal(mine.vertices, other.vertices)
        np.testing.assert_array_equal(mine.features, other.features)


@pytest.mark.torch
@given(
    st.fixed_dictionaries(
        {"fanouts": st.sampled_from([[2], [2, 2]]), "batch_size": st.integers(1, 20)},
        optional={
            "shuffle": st.booleans(),
            "drop_last": st.booleans(),
            "sampling": st.sampled_from(["uniform", "labor"]),
            "merged": st.booleans(),
        },
    ),
    st.fixed_dictionaries({}, optional={"cache": st.sampled_from([0.0, 0.5]), "ahead": st.integers(0, 2)}),
)
@settings(max_examples=10, deadline=None)
def test_batches_are_those_of_the_keywords(stored, sampled, fetched):
    torch = pytest.importorskip("torch")
    plain = list(stored.loader("train", **sampled, **fetched))
    held = stored.loader("train", batches=options.Batches(**sampled), fetching=options.Fetching(**fetched))
    for mine, other in zip(held, plain, strict=True):
        assert torch.equal(mine.n_id, other.n_id)
        assert torch.equal(mine.x, other.x)
        assert torch.equal(mine.input_id, other.input_id)


@pytest.mark.torch
def test_a_training_has_the_same_losses_and_notes_the_same_options(stored, tmp_path):
    pytest.importorskip("torch")
    flat = {"hidden": 8, "dropout": 0.1, "epochs": 2, "weight_decay": 0.0, "eval_every": 2}
    plain = fp.train.full(stored, seed=3, out=tmp_path / "plain", **flat)
    held = fp.train.full(
        stored,
        seed=3,
        network=options.Network(hidden=8, dropout=0.1),
        learning=options.Learning(epochs=2, weight_decay=0.0, eval_every=2),
        run=options.Run(out=tmp_path / "held"),
    )
    assert held.history["loss"].to_list() == plain.history["loss"].to_list()
    notes = [json.loads((tmp_path / each / "fastpart-run.json").read_text()) for each in ("plain", "held")]
    for entry in ("must_agree", "may_change", "options"):
        assert notes[0][entry] == notes[1][entry]
    assert notes[0]["may_change"]["arguments"]


def test_one_object_serves_several_functions(stored):
    batches = options.Batches(fanouts=[2, 2], batch_size=8)
    by_name = fp.predict_traffic(stored, [2, 2], 8)
    with pytest.raises(TypeError, match="needs 'fanouts'"):
        fp.predict_traffic(stored)
    assert fp.predict_traffic(stored, batches=batches).remote_rows == by_name.remote_rows
    plan = stored.plan(2, batches=batches)
    assert plan.key == stored.plan(2, fanouts=[2, 2], batch_size=8).key
