"""Features of edges with 8 bits per number: what is stored, and what readers, loaders, exports and trainings get."""

import numpy as np
import pytest

import fastpart as fp
from coded import encoded
from fastpart.cli import main
from fastpart.partitions.coding import EDGE_COLUMNS
from typed_graphs import authors

N, M, WIDTH = 60, 240, 5
RANDOM = np.random.default_rng(0)
GRAPH = RANDOM.integers(0, N, (M, 2))
NORMAL = RANDOM.standard_normal((M, WIDTH))
ROWS = {
    "row": (NORMAL * 10.0 ** RANDOM.integers(-1, 2, (M, 1))).astype(np.float32),
    "column": (NORMAL * [1, 1e3, 1e6, 1, 1]).astype(np.float32),
}


@pytest.fixture(params=list(ROWS))
def scale(request):
    return request.param


def saved(folder, rows, directedness="undirected", k=3, **more):
    graph = fp.open_graph(GRAPH, num_vertices=N, directedness=directedness)
    given = {
        "features": np.random.default_rng(1).standard_normal((N, 4)).astype(np.float32),
        "labels": np.arange(N) % 2,
        "splits": {"train": np.arange(0, N, 2), "val": np.arange(1, N, 2)},
    }
    fp.VertexPartition(np.arange(N) % k, k).save(folder, graph=graph, edge_features=rows, **given, **more)
    return fp.open_partition(folder)


def decoded(stored, entry, columns):
    """Return the features of the records of a relation, or of all, from the files alone."""
    coding, width = entry["coding"], entry["shape"][0]
    if coding["scale"] == "column":
        return lambda codes: columns[0] + columns[1] * codes.astype(np.float32)
    return lambda codes: (
        np.ascontiguousarray(codes[:, width:]).view(np.float32)[:, :1]
        + np.ascontiguousarray(codes[:, width:]).view(np.float32)[:, 1:] * codes[:, :width].astype(np.float32)
    )


def steps(rows, scale):
    """Return the step of each number: the 255th part of the range of its row or column."""
    return np.ptp(rows.astype(np.float64), axis=1 if scale == "row" else 0, keepdims=True) / 255


@pytest.mark.parametrize("directedness", ["undirected", "directed"])
def test_every_number_is_within_half_a_step(tmp_path, scale, directedness):
    stored, rows = (
        saved(tmp_path / "parts", ROWS[scale], directedness, edge_feature_dtype="int8"),
        ROWS[scale],
    )
    entry = stored.manifest["edge_features"]
    assert (entry["dtype"], entry["shape"], entry["coding"]["scale"]) == ("float32", [WIDTH], scale)
    assert stored.manifest["schema"] == 4
    assert (tmp_path / "parts" / EDGE_COLUMNS).exists() == (scale == "column")
    columns = np.load(tmp_path / "parts" / EDGE_COLUMNS) if scale == "column" else None
    for part in stored.parts:
        own, codes = rows[part.edge_ids % M], np.load(part.folder / "edge_features.npy")
        assert codes.tobytes() == encoded(own, columns).tobytes()
        assert part.edge_features.tobytes() == decoded(stored, entry, columns)(codes).tobytes()
        error = np.abs(part.edge_features.astype(np.float64) - own)
        size = np.broadcast_to(steps(rows, scale), rows.shape)[part.edge_ids % M]
        assert (error <= 0.5001 * size + 1e-6 * np.abs(own)).all()
    assert main(["verify", str(tmp_path / "parts")]) == 0


def test_features_of_vertices_are_coded_alone(tmp_path):
    stored = saved(tmp_path / "parts", ROWS["row"], feature_dtype="int8")
    assert "coding" in stored.manifest["features"]
    assert "coding" not in stored.manifest["edge_features"]
    assert stored.parts[0].edge_features.tobytes() == ROWS["row"][stored.parts[0].edge_ids % M].tobytes()
    half = saved(tmp_path / "half", ROWS["row"], edge_feature_dtype="float16")
    assert half.parts[0].edge_features.dtype == np.float16


def test_relations_are_coded_one_by_one(tmp_path):
    graph = authors()
    random = np.random.default_rng(2)
    rows = {
        name: random.standard_normal((len(pairs), 3)).astype(np.float32)
        for name, *_, pairs in graph.relations
    }
    stored = graph.saved(tmp_path, edge_features=rows, edge_feature_dtype="int8")
    first = {each.relation.name: each.relation.first for each in stored.parts[0].edge_types}
    seen = 0
    for entry in stored.manifest["relations"]:
        assert "coding" in entry["edge_features"]
    for part in stored.parts:
        for each in part.edge_types:
            data, name = part.of_relation(each.name), each.relation.name
            own = rows[name][data.edge_ids % graph.m - first[name]]
            scale = data._manifest["edge_features"]["coding"]["scale"]
            places = data.edge_ids % graph.m - first[name]
            size = np.broadcast_to(steps(rows[name], scale), rows[name].shape)[places]
            error = np.abs(data.edge_features.astype(np.float64) - own)
            assert (error <= 0.5001 * size + 1e-6 * np.abs(own)).all()
            seen += len(own)
    assert seen > 20


def test_what_is_refused(tmp_path):
    def refused(message, rows, dtype="int8"):
        with pytest.raises(fp.errors.ParameterError, match=message):
            saved(tmp_path / "x", rows, edge_feature_dtype=dtype)

    refused(r"^edge_feature_dtype: there are no features of edges", None)
    refused(r'^edge_feature_dtype: "int8" needs features of shape \(n, width\)', ROWS["row"][:, 0])
    broken = ROWS["row"].copy()
    broken[7, 1] = np.nan
    refused(r"^edge_features: row 7 holds NaN.*edge_feature_dtype", broken)
    refused(r'^edge_feature_dtype: "float16" changes a sample', ROWS["row"] * 1e-9, "float16")


# Readers.


@pytest.fixture
def both(tmp_path, scale):
    """Return a directory with coded features of edges, and one with the decoded numbers."""
    coded = saved(tmp_path / "coded", ROWS[scale], edge_feature_dtype="int8")
    numbers = np.empty_like(ROWS[scale])
    for part in coded.parts:
        numbers[part.edge_ids % M] = part.edge_features
    return coded, saved(tmp_path / "plain", numbers)


@pytest.mark.torch
def test_batches_have_the_decoded_numbers(both):
    pytest.importorskip("torch")
    for more in ({}, {"cache": 0.5}):
        batches = [list(each.loader("train", fanouts=[3, 3], batch_size=8, **more)) for each in both]
        for coded, plain in zip(*batches, strict=True):
            assert coded.edge_attr.numpy().tobytes() == plain.edge_attr.numpy().tobytes()


@pytest.mark.torch
def test_batches_of_relations_have_the_decoded_numbers(tmp_path):
    pytest.importorskip("torch")
    graph, random = authors(), np.random.default_rng(2)
    rows = {
        name: random.standard_normal((len(pairs), 3)).astype(np.float32)
        for name, *_, pairs in graph.relations
    }
    (tmp_path / "coded").mkdir()
    (tmp_path / "plain").mkdir()
    coded = graph.saved(tmp_path / "coded", edge_features=rows, edge_feature_dtype="int8")
    first = {each.relation.name: each.relation.first for each in coded.parts[0].edge_types}
    for part in coded.parts:
        for each in part.edge_types:
            data, name = part.of_relation(each.name), each.relation.name
            rows[name][data.edge_ids % graph.m - first[name]] = data.edge_features
    plain = graph.saved(tmp_path / "plain", edge_features=rows)
    ids = np.array(graph.range_of("paper"), np.int64)
    batches = [list(each.loader(ids, fanouts=[2, 2], input="paper", batch_size=3)) for each in (coded, plain)]
    for one, other in zip(*batches, strict=True):
        assert {key: rows.tolist() for key, rows in one.edge_attr_dict.items()} == {
            key: rows.tolist() for key, rows in other.edge_attr_dict.items()
        }


@pytest.mark.torch
def test_trainings_and_predictions_are_those_over_the_decoded_numbers(both, tmp_path):
    pytest.importorskip("torch")
    for method, more in (("sampled", {"fanouts": [3, 3], "batch_size": 16}), ("full", {}), ("sdt", {})):
        found = []
        for name, each in zip(("coded", "plain"), both, strict=True):
            run = getattr(fp.train, method)(
                each.folder,
                model="gatv2",
                epochs=2,
                hidden=4,
                heads=1,
                seed=1,
                out=tmp_path / f"{method}-{name}",
                **more,
            )
            found.append((run.history["loss"].to_list(), run.predict(each.folder, what="logits").tobytes()))
        assert found[0] == found[1], method


@pytest.mark.torch
def test_exports_hold_the_decoded_numbers(both, tmp_path):
    torch = pytest.importorskip("torch")
    roots = [fp.export.pyg(each.folder, tmp_path / f"pyg-{at}") for at, each in enumerate(both)]
    for part in range(3):
        rows = [torch.load(root / f"part_{part}" / "edge_feats.pt")["feats"]["edge_attr"] for root in roots]
        assert torch.equal(*rows)
    roots = [fp.export.wholegraph(each.folder, tmp_path / f"wg-{at}") for at, each in enumerate(both)]
    for part in range(3):
        assert len({(root / f"edge_features_part_{part}_of_3").read_bytes() for root in roots}) == 1
