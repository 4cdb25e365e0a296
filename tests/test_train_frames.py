"""Training from two frames, and over partitions in memory: what comes out, and what becomes of the temporary folder."""

import gc
import json
import pickle
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from fastpart.errors import GraphFormatError, ParameterError
from fastpart.runtime.launch import remove_stale
from ranks import run_alone
from trainable import communities

pytest.importorskip("torch")

N = 400
QUICK = {"epochs": 4, "hidden": 16, "workers": 1, "threads": 1}


EDGES, USERS, TOPICS = communities()
NAMED = {"id": "user", "label": "topic"}


@pytest.fixture(scope="module")
def trained():
    return fp.train.nodes(EDGES, USERS, **NAMED, k=2, **{**QUICK, "epochs": 12})


def test_the_frame_has_each_user_with_a_topic_a_probability_and_a_part(trained):
    found = trained.to_frame()
    assert found.columns == ["id", "class", "label", "probability", "part"]
    joined = USERS.with_columns(true=pl.Series(TOPICS)).join(found, left_on="user", right_on="id")
    assert len(joined) == len(found) == N
    hidden = joined.filter(pl.col("topic").is_null())
    assert len(hidden) == N // 10
    assert (hidden["true"] == hidden["label"]).mean() > 0.8
    assert found["probability"].is_between(0.25, 1).all()
    assert sorted(set(found["part"])) == [0, 1]


def test_its_score_is_that_of_the_summary(trained):
    stored = fp.open_partition(trained.folder / "parts")
    test = np.zeros(N, bool)
    for part in stored.parts:
        test[part.inner] = part.test
    found = (
        trained.to_frame().with_columns(test=test).join(USERS, left_on="id", right_on="user").filter("test")
    )
    assert not found["topic"].has_nulls()
    right = (found["topic"] == found["label"]).mean()
    assert right == pytest.approx(trained.summary["test_accuracy"], abs=1e-6)


def test_it_is_what_the_steps_one_by_one_give(trained, tmp_path):
    columns = [
        {"column": "age", "standardise": True},
        {"column": "country", "as": "onehot"},
        {"column": "city", "as": "embedding"},
    ]
    split = {"by": "random", "train": 0.6, "val": 0.2, "test": 0.2}
    users = {"files": USERS, "id": "user", "label": "topic", "split": split, "features": columns}
    follows = {"files": EDGES, "source": {"user": "follower"}, "target": {"user": "followed"}}
    graph = fp.ingest({"vertices": {"user": users}, "relations": {"follows": follows}}, tmp_path / "graph")
    parts = fp.partition(graph, 2).save(tmp_path / "parts")
    size = trained.options.batch_size
    by_hand = fp.train.sampled(parts, batch_size=size, patience=20, **{**QUICK, "epochs": 12})
    assert by_hand.history["loss"].to_list() == trained.history["loss"].to_list()
    restored = by_hand.predict(parts, restore=graph)
    assert restored.equals(trained.to_frame().select("id", "class", "label"))


def test_probabilities_are_those_of_the_logits(trained):
    logits = trained.predict(trained.folder / "parts", what="logits").astype(float)
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    found = trained.to_frame()
    assert np.allclose(found["probability"], shares.max(1), atol=1e-6)
    assert (found["class"].to_numpy() == shares.argmax(1)).all()


def test_columns_get_the_encodings_of_a_guess(trained):
    (described,) = json.loads((trained.folder / "graph/graph.json").read_text())["types"]
    columns = {each["column"]: each for each in described["features"]["columns"]}
    assert list(columns) == ["age", "country", "city"]  # bio is text, and the label no feature
    assert columns["age"]["standardised"]
    assert [columns[name]["as"] for name in ("country", "city")] == ["onehot", "embedding"]


def test_columns_that_are_no_features_are_noted(caplog):
    with caplog.at_level("INFO", "fastpart"):
        fp.train.nodes(EDGES, USERS, **NAMED, **QUICK)
    assert "features: left out bio, which are no numbers, dates or categories" in caplog.text


def pandas_of(frame):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({each.name: each.to_list() for each in frame.get_columns()})


KINDS = {
    "pandas": lambda edges, users: (pandas_of(edges), pandas_of(users)),
    "lazy": lambda edges, users: (edges.lazy(), users.lazy()),
    "arrow": lambda edges, users: (edges.to_arrow(), users.to_arrow()),
    "other order": lambda edges, users: (edges, users.sample(fraction=1, shuffle=True, seed=1)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_all_libraries_give_the_same(kind):
    def outcome(edges, users):
        trained = fp.train.nodes(edges, users, **NAMED, features=["age", "country"], **QUICK)
        return trained.history["loss"].to_list(), trained.to_frame()

    losses, frame = outcome(*KINDS[kind](EDGES, USERS))
    expected, same = outcome(EDGES, USERS)
    assert losses == expected
    assert frame.equals(same)


def test_the_index_of_pandas_has_the_ids():
    users = pandas_of(USERS).set_index("user")
    trained = fp.train.nodes(pandas_of(EDGES), users, label="topic", features=["age"], **QUICK)
    found = trained.to_pandas().set_index("id")
    assert len(users.join(found, how="inner")) == N
    assert list(found.columns) == ["class", "label", "probability", "part"]


def test_pandas_needs_no_pyarrow():
    code = """
import sys
sys.modules["pyarrow"] = None
import pandas, fastpart as fp
names = [f"n{v}" for v in range(40)]
edges = pandas.DataFrame({"source": names, "target": names[2:] + names[:2]})
users = pandas.DataFrame({"name": names, "x": [float(v % 2) for v in range(40)], "y": ["a", "b"] * 20})
trained = fp.train.nodes(edges, users, id="name", label="y", epochs=2, workers=1)
print(len(trained.to_pandas()), sorted(set(trained.to_pandas()["label"]) - {"a", "b"}))
print(fp.partition(edges, 2).to_pandas()["id"][0])
"""
    pytest.importorskip("pandas")
    done = run_alone("ranks", code)
    assert done.out == "40 []\nn0\n", done.errors


def test_numbers_with_gaps_are_classes_and_have_the_mean():
    pandas = pytest.importorskip("pandas")
    users = pandas_of(
        USERS.select("user", "age", number=pl.col("topic").replace_strict({"a": 0, "b": 1, "c": 2, "d": 3}))
    )
    users.loc[3, "age"] = None
    assert users["number"].dtype == float  # pandas writes whole numbers with gaps so
    trained = fp.train.nodes(EDGES, users, id="user", label="number", **QUICK)
    assert not trained.task.regression
    assert "label" not in trained.to_frame().columns
    row = np.load(trained.folder / "graph/features.npy")[sorted(users["user"]).index(users["user"][3])]
    assert abs(row[0]) < 0.2  # the mean of all is near that of the training vertices
    assert isinstance(trained.to_pandas(), pandas.DataFrame)


def test_a_regression_has_predictions():
    trained = fp.train.nodes(EDGES, USERS, id="user", label="age", features=["country"], **QUICK)
    assert trained.to_frame().columns == ["id", "prediction", "part"]


# Splits.


def splits_of(**given):
    trained = fp.train.nodes(EDGES, USERS, **NAMED, features=["age"], **{**QUICK, "epochs": 1}, **given)
    with np.load(trained.folder / "graph/split.npz") as file:
        return {name: set(file[name].tolist()) for name in file}, trained.to_frame()["id"]


def test_chance_splits_labelled_vertices_by_the_seed():
    one, ids = splits_of()
    unlabelled = set(np.flatnonzero(ids.is_in(USERS.filter(pl.col("topic").is_null())["user"])).tolist())
    assert not unlabelled & (one["train"] | one["val"] | one["test"])
    assert len(one["train"] | one["val"] | one["test"]) == N - len(unlabelled)
    assert 0.5 < len(one["train"]) / (N - len(unlabelled)) < 0.7
    assert splits_of()[0] == one
    assert splits_of(seed=1)[0] != one


def test_a_column_says_the_split():
    fold = pl.Series(["train"] * 200 + ["val"] * 100 + ["test"] * 100)
    users = USERS.with_columns(fold=fold)
    trained = fp.train.nodes(EDGES, users, **NAMED, features=["age"], split="fold", **{**QUICK, "epochs": 1})
    with np.load(trained.folder / "graph/split.npz") as file:
        train = trained.to_frame()["id"].gather(file["train"])
    assert set(train) == set(users.filter(fold="train")["user"])


def test_shares_may_leave_out_splits():
    found, _ = splits_of(split={"train": 1.0})
    assert len(found["train"]) == N - N // 10


# Ids in one of the frames only.


def test_a_vertex_without_edges_is_predicted_and_an_unknown_id_is_refused():
    users = pl.concat([USERS, USERS.head(1).with_columns(user=pl.lit("alone"))])
    assert "alone" in set(fp.train.nodes(EDGES, users, **NAMED, features=["age"], **QUICK).to_frame()["id"])
    edges = pl.concat([EDGES, pl.DataFrame({"follower": ["nobody"], "followed": ["u000"]})])
    with pytest.raises(
        GraphFormatError, match=r"names a vertex that no table declares.*'follower' is 'nobody'"
    ):
        fp.train.nodes(edges, USERS, **NAMED, features=["age"], **QUICK)
    for missing, count in (("drop", N), ("add", N + 1)):
        trained = fp.train.nodes(edges, USERS, **NAMED, features=["age"], missing=missing, **QUICK)
        assert len(trained.to_frame()) == count


REFUSED = {
    "text": (
        {"features": ["bio"]},
        r"^features: column 'bio' holds 400 values of String in 400 rows.*numbers",
    ),
    "absent": (
        {"features": ["agee"]},
        r"^features: the vertices have no column 'agee'\. Did you mean 'age'\?",
    ),
    "none": ({"features": []}, r"^features: there are none"),
    "label": ({"label": "topics"}, r"^label: the vertices have no column 'topics'\. Did you mean 'topic'\?"),
    "split": ({"split": "fold"}, r"^split: the vertices have no column 'fold'"),
    "shares": ({"split": {"tran": 0.5}}, r"^split: 'tran' is no split"),
    "id": ({"id": None}, r'^id: which column of the vertices holds the ids\?.*id="user"'),
    "k": ({"k": 0}, r"^k: "),
    "columns": ({"columns": ("a", "b")}, r"^columns: "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_parameter_and_leave_nothing(case, tmp_path):
    given, said = REFUSED[case]
    with pytest.raises(ParameterError, match=said):
        fp.train.nodes(EDGES, USERS, **{**NAMED, **given}, tmp_dir=tmp_path, epochs=1)
    assert list(tmp_path.iterdir()) == []


TWICE = pl.concat([USERS, USERS.head(1)])
IN_WORDS_OF_FRAMES = {
    "id": (EDGES, USERS, {"id": "usr"}, r"^id: the vertices have no column 'usr'\. Did you mean 'user'\?"),
    "twice": (EDGES, TWICE, {}, r"^vertices: the id 'u\d+' is in vertices: row 0 .* Remove one$"),
    "unknown": (EDGES, USERS[1:], {}, r'^edges: .*in edges: row .* Pass missing="drop" or missing="add"$'),
    "label": (EDGES, USERS, {"features": ["age", "topic"]}, r"^features: column 'topic' is the label"),
    "column": (EDGES, USERS, {"features": [{"column": "agee"}]}, r"^features: vertices has no column 'agee'"),
    "word": (
        EDGES,
        USERS,
        {"features": [{"column": "age", "as": "hot"}]},
        r"^features\.as: unknown value 'hot'",
    ),
    "missing": (
        EDGES,
        USERS.with_columns(age=pl.lit(None, pl.Int64)),
        {"features": [{"column": "age"}]},
        r"^vertices: row .*Pass an entry of features that says what stands for it",
    ),
    "null": (
        EDGES.with_columns(pl.lit(None, pl.String).alias(EDGES.columns[0])),
        USERS,
        {"columns": EDGES.columns[:2]},
        r"^edges: row .* an id is null\. Remove the row$",
    ),
}


@pytest.mark.parametrize("case", IN_WORDS_OF_FRAMES)
def test_refusals_of_rows_speak_of_frames_and_parameters(case):
    edges, users, given, said = IN_WORDS_OF_FRAMES[case]
    with pytest.raises((GraphFormatError, ParameterError), match=said) as error:
        fp.train.nodes(edges, users, **{**NAMED, "features": ["age"], **given}, epochs=1)
    assert "schema" not in str(error.value)
    assert "data frame" not in str(error.value)


def test_other_objects_are_no_frames():
    with pytest.raises(TypeError, match=r"^vertices: expected a frame of Polars, pandas or Arrow"):
        fp.train.nodes(EDGES, 3, **NAMED)


# The temporary folder.


def test_the_folder_goes_with_the_result(tmp_path):
    trained = fp.train.nodes(EDGES, USERS, **NAMED, features=["age"], tmp_dir=tmp_path, **QUICK)
    longer = trained.resume(epochs=5)
    assert sorted(each.name for each in trained.folder.iterdir()) == ["graph", "parts", "run"]
    assert pickle.loads(pickle.dumps(trained)).folder is None
    del trained
    gc.collect()
    assert len(longer.history) == 5
    assert longer.folder.exists()
    del longer
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_training_removes_the_folder(tmp_path):
    def fails(row):
        raise RuntimeError("enough")

    with pytest.raises(
        RuntimeError, match="enough"
    ) as caught:  # as a notebook keeps the last error, with its frames
        fp.train.nodes(EDGES, USERS, **NAMED, features=["age"], tmp_dir=tmp_path, on_epoch=fails, **QUICK)
    assert list(tmp_path.iterdir()) == [], caught


CHILD = """
import sys, time
import polars as pl, fastpart as fp
names = [f"n{v}" for v in range(40)]
edges = pl.DataFrame({"source": names, "target": names[2:] + names[:2]})
users = pl.DataFrame({"name": names, "x": [float(v % 2) for v in range(40)], "y": ["a", "b"] * 20})
trained = fp.train.nodes(edges, users, id="name", label="y", epochs=1, workers=1, tmp_dir=sys.argv[1])
print(trained.folder.exists(), flush=True)
"""


def test_the_folder_is_gone_when_the_process_ends(tmp_path):
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (child.stdout, child.returncode) == ("True\n", 0), child.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_next_training_removes_what_a_killed_process_left(tmp_path):
    code = f"{CHILD}\ntime.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "True\n"
    assert remove_stale(tmp_path) == []  # it lives
    child.send_signal(signal.SIGTERM)
    child.wait(30)
    child.stdout.close()
    (left,) = tmp_path.iterdir()
    trained = fp.train.nodes(EDGES, USERS, **NAMED, features=["age"], tmp_dir=tmp_path, **QUICK)
    assert not left.exists()
    assert list(tmp_path.iterdir()) == [trained.folder]


def test_a_saved_result_can_be_opened_and_goes_on(trained, tmp_path):
    kept = trained.save(tmp_path / "kept")
    assert (kept.folder, kept.out) == (None, tmp_path / "kept/run")
    assert kept.to_frame(graph=tmp_path / "kept/graph").equals(trained.to_frame())
    (tmp_path / "kept").rename(tmp_path / "moved")
    opened = fp.train.open(tmp_path / "moved/run")
    assert opened.to_frame(graph=tmp_path / "moved/graph").equals(trained.to_frame())
    assert len(opened.resume(epochs=13).history) == 13
    with pytest.raises(ParameterError, match=r"out: .* holds what fastpart did not write there"):
        trained.save(tmp_path / "moved")
    with pytest.raises(ParameterError, match=r"^save: there is no temporary folder"):
        opened.save(tmp_path / "again")


# Partitions in memory.


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    graph = fp.generate.planted(folder / "g.bin", n=N, m=2000, classes=4, features=8, seed=1)
    beside = {"features": folder / "g.bin.features.npy", "labels": np.load(folder / "g.bin.labels.npy")}
    order = np.random.default_rng(0).permutation(N)
    return graph, {**beside, "splits": {"train": order[:200], "val": order[200:300], "test": order[300:]}}


IN_MEMORY = {
    "sampled": fp.spring,
    "full": fp.spring,
    "bytegnn": fp.spring,
    "distgnn": fp.algorithms.hdrf,
}


@pytest.mark.parametrize("method", IN_MEMORY)
def test_a_partition_in_memory_trains_as_its_directory(method, data, tmp_path):
    graph, beside = data
    partition, train = IN_MEMORY[method](graph, 2), getattr(fp.train, method)
    quick = {name: each for name, each in QUICK.items() if name != "workers"}
    held = train(partition, **beside, **quick, tmp_dir=tmp_path)
    stored = train(partition.save(tmp_path / "parts", **beside), **quick)
    assert held.history["loss"].to_list() == stored.history["loss"].to_list()
    assert held.to_frame().equals(stored.to_frame())
    assert stored.folder is None
    folder = held.folder
    del held
    gc.collect()
    assert not folder.exists()


def test_links_and_labels_of_edges_over_partitions_in_memory(data):
    graph, beside = data
    links = fp.split_edges(graph, seed=0)
    partition = fp.spring(links.graph, 2)
    found = fp.train.links(partition, features=beside["features"], edge_splits=links, **QUICK)
    assert found.to_frame().columns == ["id", "embedding", "part"]
    kinds = np.arange(graph.num_edges) % 2
    splits = {"train": kinds == 0, "val": kinds == 1}
    partition = fp.spring(graph, 2)
    edges = fp.train.edges(
        partition, features=beside["features"], edge_labels=kinds, edge_label_splits=splits, **QUICK
    )
    assert edges.folder.exists()
    with pytest.raises(ParameterError, match=r"^to_frame: the model predicts edges"):
        edges.to_frame()


def test_a_partition_that_lacks_something_is_refused(data, tmp_path):
    graph, beside = data
    partition = fp.spring(graph, 2)
    refused = {
        r"^source: the partition holds no labels, no splits\. Pass labels=\.\.\., splits=\.\.\.$": (
            partition,
            {"features": beside["features"]},
        ),
        r"^source: the partition does not know its graph\. Set `p\.graph`": (
            fp.VertexPartition(partition.assignment, 2),
            beside,
        ),
        r"^features: the partition is in a directory, which has its own\. Leave it out": (
            partition.save(tmp_path / "parts", **beside),
            {"features": beside["features"]},
        ),
    }
    (tmp_path / "tmp").mkdir()
    for said, (source, given) in refused.items():
        with pytest.raises(ParameterError, match=said):
            fp.train.sampled(source, **given, tmp_dir=tmp_path / "tmp", **QUICK)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_ranks_of_a_launcher_refuse_a_partition_in_memory(data, monkeypatch):
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "TORCHELASTIC_RUN_ID": "x",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ParameterError, match=r"^source: the partition is in memory, where other processes"):
        fp.train.sampled(fp.spring(data[0], 2), **data[1])
