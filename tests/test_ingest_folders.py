"""Datasets of OGB, DGL and neo4j in small, read by an oracle of plain csv, and by ingest."""

import csv
import gzip
import json

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.graphs.ingest import ingest


def write(folder, files):
    """Write text files, packed if their names say so."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return folder


def rows_of(file):
    """Return the records of a text file."""
    text = gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text()
    return list(csv.reader(text.splitlines()))


def lines(rows):
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def numbered(out, name):
    """Return the vertex of each id of a type, as text."""
    return {str(id): vertex for id, vertex in pl.read_parquet(out / "ids" / f"{name}.parquet").rows()}


def pairs_of(out):
    return np.fromfile(out / "edges.bin", "<u4").reshape(-1, 2).tolist()


def splits_of(file):
    with np.load(file) as found:
        return {name: found[name].tolist() for name in found}


# OGB.

PLAIN = {
    "raw/edge.csv.gz": lines([(0, 1), (4, 2), (11, 0), (2, 10), (0, 1)]),
    "raw/num-node-list.csv.gz": "12\n",
    "raw/num-edge-list.csv.gz": "5\n",
    "raw/node-feat.csv.gz": lines([(place / 8, -place, 0.1) for place in range(12)]),
    "raw/node-label.csv.gz": lines([(place % 3,) for place in range(12)]),
    "raw/node_year.csv.gz": lines([(2000 + place,) for place in range(12)]),
    "raw/node_species.csv.gz": lines([(7,)] * 12),
    "raw/edge-feat.csv.gz": lines([(place, 0.5) for place in range(5)]),
    "split/time/train.csv.gz": lines([(9,), (1,), (3,)]),
    "split/time/valid.csv.gz": lines([(0,)]),
    "split/time/test.csv.gz": lines([(11,), (10,)]),
    "RELEASE_v1.txt": "",
}


def test_a_dataset_of_ogb(tmp_path, caplog):
    folder = write(tmp_path / "arxiv", PLAIN)
    with caplog.at_level("INFO", "fastpart"):
        graph = ingest(folder, tmp_path / "graph")
    assert "arxiv: a raw dataset of OGB, with the types node, and the relations edge" in caplog.text
    assert "left out " in caplog.text
    assert "node_species.csv.gz" in caplog.text
    out = tmp_path / "graph"
    assert (graph.num_vertices, graph.directedness) == (12, "directed")
    assert pairs_of(out) == [[int(each) for each in row] for row in rows_of(folder / "raw/edge.csv.gz")]
    for name, file, dtype in (
        ("features", "node-feat", np.float32),
        ("edge_features", "edge-feat", np.float32),
        ("labels", "node-label", np.int64),
        ("times", "node_year", np.int64),
    ):
        expected = np.array(rows_of(folder / f"raw/{file}.csv.gz"), np.float64).astype(dtype)
        assert np.array_equal(np.load(out / f"{name}.npy"), expected.squeeze()), name
    for name, file in (("train", "train"), ("val", "valid"), ("test", "test")):
        expected = sorted(int(row[0]) for row in rows_of(folder / f"split/time/{file}.csv.gz"))
        assert splits_of(out / "split.npz")[name] == expected
    assert numbered(out, "node") == {str(each): each for each in range(12)}


def test_the_raw_folder_itself_has_no_split(tmp_path):
    folder = write(tmp_path / "arxiv", PLAIN)
    ingest(folder / "raw", tmp_path / "graph")
    assert not (tmp_path / "graph" / "split.npz").exists()


def test_several_labels_of_ogb(tmp_path):
    folder = write(tmp_path / "proteins", PLAIN | {"raw/node-label.csv.gz": "0,1\n1,1\n0,0\n" * 4})
    ingest(folder, tmp_path / "graph")
    assert np.load(tmp_path / "graph/labels.npy").tolist() == [[0, 1], [1, 1], [0, 0]] * 4


def test_labels_of_ogb_that_are_missing(tmp_path):
    folder = write(tmp_path / "papers", PLAIN | {"raw/node-label.csv.gz": "nan\n1.0\n2.0\n" * 4})
    ingest(folder, tmp_path / "graph")
    assert np.load(tmp_path / "graph/labels.npy").tolist() == [-1, 1, 2] * 4


ARRAYS = {
    "edge_index": np.array([[0, 4, 11, 2, 0], [1, 2, 0, 10, 1]]),
    "num_nodes_list": np.array([12]),
    "num_edges_list": np.array([5]),
    "node_feat": np.arange(24, dtype=np.float16).reshape(12, 2),
    "node_year": 2000 + np.arange(12)[:, None],
    "node_species": np.ones((12, 1)),
    "edge_feat": np.arange(10, dtype=np.float32).reshape(5, 2),
}
LABELS = np.array([[np.nan], [1], [2]] * 4, np.float32)
SPLIT = {"train": [9, 1, 3], "valid": [0], "test": [11, 10]}


def arrays(folder, **changed):
    """Write a dataset of arrays."""
    (folder / "raw").mkdir(parents=True)
    np.savez(folder / "raw/data.npz", **{**ARRAYS, **changed})
    np.savez(folder / "raw/node-label.npz", node_label=LABELS)
    return folder


def saved(torch, folder, name, content):
    (folder / "split/time").mkdir(parents=True, exist_ok=True)
    torch.save(content, folder / "split/time" / name)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["lists", "arrays", "tensors"])
def test_a_dataset_of_ogb_in_arrays(tmp_path, caplog, kind):
    folder = arrays(tmp_path / "papers")
    if kind == "lists":
        texts = {f"split/time/{name}.csv.gz": lines([(v,) for v in ids]) for name, ids in SPLIT.items()}
        write(folder, texts)
    else:
        torch = pytest.importorskip("torch")
        make = np.array if kind == "arrays" else torch.tensor
        saved(torch, folder, "split_dict.pt", {name: make(ids) for name, ids in SPLIT.items()})
    with caplog.at_level("INFO", "fastpart"):
        graph = ingest(folder, tmp_path / "graph")
    assert "left out node_species" in caplog.text
    out = tmp_path / "graph"
    assert (graph.num_vertices, graph.directedness) == (12, "directed")
    assert pairs_of(out) == ARRAYS["edge_index"].T.tolist()
    assert np.array_equal(np.load(out / "features.npy"), ARRAYS["node_feat"])
    assert np.array_equal(np.load(out / "edge_features.npy"), ARRAYS["edge_feat"])
    assert np.array_equal(np.load(out / "times.npy"), ARRAYS["node_year"][:, 0])
    assert np.load(out / "labels.npy").tolist() == [-1, 1, 2] * 4
    assert splits_of(out / "split.npz") == {"train": [1, 3, 9], "val": [0], "test": [10, 11]}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"num_nodes_list": np.array([4, 8])}, "data.npz: 2 graphs. Only datasets of one graph are read"),
        ({"edge_index": np.zeros((5, 3))}, "expected num_nodes_list, and edge_index of two rows"),
        ({"node_feat": np.zeros((11, 2))}, "data.npz: 11 rows of features, 12 rows of time"),
        ({"edge_index": np.array([[0], [12]])}, "'target' is 12, which is no id of 'node'"),
        ({"node_feat": np.array([{}])}, "data.npz: "),
    ],
)
def test_arrays_of_ogb_that_are_refused(tmp_path, changed, said):
    if "edge_index" in changed:
        changed = {**changed, "edge_feat": np.zeros((changed["edge_index"].shape[1], 1))}
    folder = arrays(tmp_path / "papers", **changed)
    with pytest.raises(fp.FastpartError) as refused:
        ingest(folder, tmp_path / "graph")
    assert said in str(refused.value)


class Harm:
    """What a pickle would run."""

    def __reduce__(self):
        return print, ("harm",)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"train": Harm()}, "split_dict.pt: not a file of torch with tensors and arrays only"),
        ([1], "split_dict.pt: expected a dict of tensors, got list"),
        (
            {**SPLIT, "train": np.array([1, 12])},
            "split_dict.pt: train, entry 2: 12 is no vertex from 0 to 11",
        ),
        ({"train": np.array([0.5])}, "split_dict.pt: train: expected the numbers of vertices"),
    ],
)
def test_splits_of_torch_that_are_refused(tmp_path, capsys, content, said):
    torch = pytest.importorskip("torch")
    folder = arrays(tmp_path / "papers")
    saved(torch, folder, "split_dict.pt", content)
    with pytest.raises(fp.FastpartError) as refused:
        ingest(folder, tmp_path / "graph")
    assert said in str(refused.value)
    assert "harm" not in capsys.readouterr().out


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["edge", "ends"])
def test_pairs_of_ogb_are_edge_splits(tmp_path, caplog, kind):
    torch = pytest.importorskip("torch")
    folder = write(tmp_path / "collab", {name: text for name, text in PLAIN.items() if "split" not in name})
    pairs = {"valid": np.array([[1, 2], [5, 6]]), "test": np.array([[7, 8]])}
    for name, each in {"train": np.array([[0, 1]]), **pairs}.items():
        ends = {"source_node": torch.tensor(each[:, 0]), "target_node": torch.tensor(each[:, 1])}
        content = {"edge": each, "weight": np.ones(len(each))} if kind == "edge" else ends
        saved(torch, folder, f"{name}.pt", content)
    with caplog.at_level("INFO", "fastpart"):
        graph = ingest(folder, tmp_path / "graph")
    assert "train.pt" not in caplog.text
    assert "pairs of vertices, which edge_splits= of save takes" in caplog.text
    p = fp.VertexPartition(np.arange(12) % 2, 2)
    stored = p.save(tmp_path / "parts", graph=graph, edge_splits=folder / "split/time")
    by_hand = {"val": pairs["valid"], "test": pairs["test"]}
    other = p.save(tmp_path / "other", graph=graph, edge_splits=by_hand)
    assert stored.manifest["files"] == other.manifest["files"]
    assert stored.manifest["edge_splits"]["val"] == 2
    saved(torch, folder, "test.pt", {"head": np.array([1])})
    with pytest.raises(
        fp.FastpartError, match=r"test.pt: expected edge, or source_node and target_node. It has head"
    ):
        p.save(tmp_path / "more", graph=graph, edge_splits=folder / "split/time")


TYPED = {
    "raw/num-node-dict.csv.gz": "author,paper\n3,11\n",
    "raw/triplet-type-list.csv.gz": "author,writes,paper\npaper,cites,paper\npaper,writes,author\n",
    "raw/nodetype-has-feat.csv.gz": "author,paper\nFalse,True\n",
    "raw/nodetype-has-label.csv.gz": "author,paper\nFalse,True\n",
    "raw/node-feat/paper/node-feat.csv.gz": lines([(place, place / 4) for place in range(11)]),
    "raw/node-feat/paper/node_year.csv.gz": lines([(1990 + place,) for place in range(11)]),
    "raw/node-label/paper/node-label.csv.gz": lines([(place % 2,) for place in range(11)]),
    "raw/relations/author___writes___paper/edge.csv.gz": "0,10\n2,1\n",
    "raw/relations/author___writes___paper/num-edge-list.csv.gz": "2\n",
    "raw/relations/paper___cites___paper/edge.csv.gz": "10,2\n2,9\n0,0\n",
    "raw/relations/paper___cites___paper/edge_reltype.csv.gz": "0\n1\n1\n",
    "raw/relations/paper___cites___paper/edge_weight.csv.gz": "1.5\n2\n1\n",
    "raw/relations/paper___writes___author/edge.csv.gz": "10,0\n",
    "split/time/nodetype-has-split.csv.gz": "author,paper\nFalse,True\n",
    "split/time/paper/train.csv.gz": "10\n0\n",
    "split/time/paper/valid.csv.gz": "1\n",
    "split/time/paper/test.csv.gz": "2\n",
}


def test_a_dataset_of_ogb_with_types(tmp_path):
    folder = write(tmp_path / "mag", TYPED)
    graph = ingest(folder, tmp_path / "graph")
    out = tmp_path / "graph"
    assert [(each.name, each.n) for each in graph.types] == [("author", 3), ("paper", 11)]
    first, at, pairs = {"author": 0, "paper": 3}, 0, pairs_of(out)
    for each in graph.relations:
        name = each.name.replace("-", "___") if "-" in each.name else "paper___cites___paper"
        rows = rows_of(folder / f"raw/relations/{name}/edge.csv.gz")
        source, _, target = name.split("___")
        expected = [[int(a) + first[source], int(b) + first[target]] for a, b in rows]
        assert pairs[at : at + len(rows)] == expected
        at += len(rows)
    assert [each.name for each in graph.relations] == ["author-writes-paper", "cites", "paper-writes-author"]
    paper = out / "types" / "paper"
    expected = np.array(rows_of(folder / "raw/node-feat/paper/node-feat.csv.gz"), np.float32)
    assert np.array_equal(np.load(paper / "features.npy"), expected)
    assert np.load(paper / "times.npy").tolist() == [1990 + place for place in range(11)]
    assert np.load(paper / "labels.npy").tolist() == [place % 2 for place in range(11)]
    assert splits_of(paper / "split.npz") == {"train": [0, 10], "val": [1], "test": [2]}
    assert not (out / "types" / "author").exists()
    assert json.loads((out / "graph.json").read_text())["relations"][1]["weights"]["column"] == "weight"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"raw/num-node-list.csv.gz": "12\n5\n"}, "num-node-list.csv.gz: 2 graphs. Only datasets of one"),
        ({"raw/num-node-list.csv.gz": "twelve\n"}, "'twelve' is no number of vertices"),
        ({"split/time/test.csv.gz": "12\n"}, "test.csv.gz: line 1: '12' is no vertex from 0 to 11"),
        ({"split/time/test.csv.gz": "4\n1\n"}, "test.csv.gz: line 2: vertex 1 is also in another split"),
        ({"split/other/train.csv.gz": "1\n"}, "there are several splits, "),
        (
            {"raw/edge.csv.gz": "0,1\n0,12\n" + "1,1\n" * 3},
            "edge.csv.gz: line 2: 'target' is 12, which is no id of 'node'",
        ),
        (
            {"raw/edge.csv.gz": "0,1\nx,2\n" + "1,1\n" * 3},
            "edge.csv.gz: line 2: column 'source': 'x' is not a whole number",
        ),
        (
            {"raw/node-feat.csv.gz": "1,2,3\n" * 11},
            "11 rows by node-feat.csv.gz, 12 rows by node_year.csv.gz",
        ),
        ({"raw/node_year.csv.gz": "2000\n" * 13}, "13 rows by node_year.csv.gz"),
        ({"raw/node-label.csv.gz": "no gzip"}, "node-label.csv.gz: not a text table"),
    ],
)
def test_datasets_of_ogb_that_are_refused(tmp_path, files, said):
    folder = write(tmp_path / "arxiv", PLAIN | files)
    if said.endswith("text table"):
        (folder / "raw/node-label.csv.gz").write_bytes(b"\x1f\x8b no gzip")
    with pytest.raises(fp.FastpartError) as refused:
        ingest(folder, tmp_path / "graph")
    assert said in str(refused.value)


def test_a_check_of_a_dataset(tmp_path):
    folder = write(tmp_path / "arxiv", PLAIN | {"raw/edge.csv.gz": "0,1\n0,12\n3,13\n1,2\n3,4\n"})
    (found,) = ingest(folder, check=True)
    assert (found.count, found.rows) == (2, ["line 2", "line 3"])


# DGL.

CSVS = {
    "meta.yaml": """
dataset_name: small
edge_data:
- file_name: edges_0.csv
  etype: [user, follow, user]
- file_name: edges_1.csv
  etype: [user, like, item]
node_data:
- file_name: nodes_0.csv
  ntype: user
- file_name: nodes_1.csv
  ntype: item
""",
    "nodes_0.csv": """node_id,label,train_mask,val_mask,test_mask,feat,age,name
10,1,True,False,False,"0.5, 1, 2",31,ann
9,0,False,True,False,"1.5, 2, 3",27,bob
2,1,False,False,False,"0.25, 0, 0",40,eve
7,0,False,False,True,"0.1, 0, 0",40,joe
""",
    "nodes_1.csv": 'node_id,feat,label\nb,"[1, 2]",0.5\na,"[3, 4]",1.25\n',
    "edges_0.csv": 'src_id,dst_id,label,feat\n9,10,1,"0.5,1"\n10,2,0,"0.25,2"\n2,7,0,"1,3"\n',
    "edges_1.csv": "src_id,dst_id,weight,train_mask,test_mask\n9,a,2.5,1,0\n10,b,1,0,1\n",
}


def test_a_csv_dataset_of_dgl(tmp_path, caplog):
    folder = write(tmp_path / "small", CSVS)
    with caplog.at_level("INFO", "fastpart"):
        graph = ingest(folder, tmp_path / "graph")
    assert "a CSVDataset of DGL, with the types user, item, and the relations follow, like" in caplog.text
    assert "left out name of " in caplog.text
    out = tmp_path / "graph"
    users, items = rows_of(folder / "nodes_0.csv")[1:], rows_of(folder / "nodes_1.csv")[1:]
    # DGL numbers vertices by their sorted ids, numbers by value.
    users.sort(key=lambda row: int(row[0]))
    items.sort()
    place = {("item", row[0]): at for at, row in enumerate(items)}
    place |= {("user", row[0]): len(items) + at for at, row in enumerate(users)}
    expected = [[place["user", a], place["user", b]] for a, b, *_ in rows_of(folder / "edges_0.csv")[1:]]
    expected += [[place["user", a], place["item", b]] for a, b, *_ in rows_of(folder / "edges_1.csv")[1:]]
    assert pairs_of(out) == expected
    assert graph.directedness == "directed"
    features = [[*json.loads(f"[{row[5]}]"), float(row[6])] for row in users]
    assert np.array_equal(np.load(out / "types/user/features.npy"), np.array(features, np.float32))
    assert np.load(out / "types/user/labels.npy").tolist() == [int(row[1]) for row in users]
    assert splits_of(out / "types/user/split.npz") == {
        name: [at for at, row in enumerate(users) if row[column] == "True"]
        for name, column in (("train", 2), ("val", 3), ("test", 4))
    }
    assert np.load(out / "types/item/features.npy").tolist() == [json.loads(row[1]) for row in items]
    assert np.load(out / "types/item/labels.npy").tolist() == [float(row[2]) for row in items]
    assert np.load(out / "relations/follow/labels.npy").tolist() == [1, 0, 0]
    assert np.load(out / "relations/follow/features.npy").tolist() == [[0.5, 1], [0.25, 2], [1, 3]]
    assert np.load(out / "relations/like/features.npy").tolist() == [[2.5], [1]]
    assert splits_of(out / "relations/like/split.npz") == {"train": [0], "test": [1]}


def test_a_csv_dataset_of_dgl_with_other_names(tmp_path):
    meta = {
        "dataset_name": "x",
        "separator": ";",
        "node_data": [{"file_name": "n.csv", "node_id_field": "nid"}],
        "edge_data": [{"file_name": "e.csv", "src_id_field": "from", "dst_id_field": "to"}],
    }
    files = {
        "meta.yaml": json.dumps(meta),
        "n.csv": "nid;label\nu;0,1\nv;1,1\n",
        "e.csv": "from;to;graph_id\nu;v;0\n",
    }
    write(tmp_path / "x", files)
    graph = ingest(tmp_path / "x" / "meta.yaml", tmp_path / "graph")
    assert (graph.num_vertices, graph.num_edges) == (2, 1)
    assert list(numbered(tmp_path / "graph", "_V")) == ["u", "v"]
    assert np.load(tmp_path / "graph/labels.npy").tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"edges_0.csv": "src_id,dst_id,graph_id\n9,10,0\n9,10,1\n"},
            "edges_0.csv: several graphs, by 'graph_id'",
        ),
        ({"nodes_1.csv": "id\na\n"}, "nodes_1.csv: there is no column 'node_id'. It has id"),
        (
            {"nodes_1.csv": 'node_id,feat\na,"1,2"\nb,"1"\n'},
            "nodes_1.csv: line 3, column 'feat': a list of 1",
        ),
        (
            {"nodes_1.csv": 'node_id,feat\na,"1,2"\nb,"1,x"\n'},
            "nodes_1.csv: line 3, column 'feat': the value is",
        ),
        (
            {"edges_1.csv": "src_id,dst_id\n9,a\n9,c\n"},
            "edges_1.csv: line 3: 'dst_id' is 'c', which is no id of",
        ),
        ({"meta.yaml": "node_data: [{ntype: a}]\nedge_data: []\n"}, "node_data[0]: `file_name` is missing"),
    ],
)
def test_datasets_of_dgl_that_are_refused(tmp_path, files, said):
    folder = write(tmp_path / "small", CSVS | files)
    with pytest.raises(fp.FastpartError) as refused:
        ingest(folder, tmp_path / "graph")
    assert said in str(refused.value)


# neo4j.

EXPORT = """"_id","_labels","born","name","released","tagline","title","_start","_end","_type","roles","year"
"188",":Movie","","","1999","Welcome to the Real World","The Matrix",,,,,
"9",":Person","1964","Keanu, Reeves","","","",,,,,
"10",":Person","1967","Carrie-Anne Moss","","","",,,,,
"11",":Person:Director","1965","Lana ""L"" Wachowski","","","",,,,,
"12",":Movie","","","2003","","Reloaded",,,,,
,,,,,,,"9","188","ACTED_IN","[""Neo""]","1998"
,,,,,,,"10","188","ACTED_IN","[""Trinity""]","1997"
,,,,,,,"11","12","DIRECTED","","2001"
,,,,,,,"11","188","ACTED_IN","","1"
"""


@pytest.mark.parametrize("name", ["movies.csv", "in/movies.csv.gz"])
def test_an_export_of_neo4j(tmp_path, caplog, name):
    write(tmp_path, {name: EXPORT})
    source = tmp_path / name if name.startswith("movies") else tmp_path / "in"
    with caplog.at_level("INFO", "fastpart"):
        graph = ingest(source, tmp_path / "graph")
    assert "an export of neo4j by APOC, with the types Movie, Person, Person-Director" in caplog.text
    assert "left out tagline of Movie: text" in caplog.text
    out = tmp_path / "graph"
    rows = [dict(zip(rows_of(tmp_path / name)[0], row, strict=True)) for row in rows_of(tmp_path / name)[1:]]
    types = {row["_id"]: row["_labels"][1:].replace(":", "-") for row in rows if row["_id"]}
    place, at = {}, 0
    for type_ in sorted(set(types.values())):
        for id in sorted((id for id in types if types[id] == type_), key=int):
            place[id], at = at, at + 1
    records = [row for row in rows if row["_type"]]
    triple = {(types[row["_start"]], row["_type"], types[row["_end"]]): [] for row in records}
    for row in records:
        triple[types[row["_start"]], row["_type"], types[row["_end"]]].append(
            [place[row["_start"]], place[row["_end"]]]
        )
    names = {"DIRECTED" if each[1] == "DIRECTED" else "-".join(each): pairs for each, pairs in triple.items()}
    assert [each.name for each in graph.relations] == sorted(names)
    assert pairs_of(out) == [pair for each in sorted(names) for pair in names[each]]
    years = {row["_id"]: row["released"] or row["born"] for row in rows if row["_id"]}
    for type_, ids in (("Movie", ["12", "188"]), ("Person", ["9", "10"])):
        assert np.load(out / f"types/{type_}/features.npy").tolist() == [[float(years[id])] for id in ids]
    assert np.load(out / "relations/Person-ACTED_IN-Movie/features.npy").tolist() == [[1998], [1997]]
    assert {id: vertex for name in set(types.values()) for id, vertex in numbered(out, name).items()} == place


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            ',,,,,,,"9","77","SAW","",""\n',
            "relationships SAW name a node that is not in the file. Export both",
        ),
        ('"9",":Person","1964","","","","",,,,,\n', "is in "),
        ('"x"",":Person",,,,,,,,,,\n', "not a text table in UTF-8"),
    ],
)
def test_exports_of_neo4j_that_are_refused(tmp_path, more, said):
    file = write(tmp_path, {"m.csv": EXPORT + more}) / "m.csv"
    with pytest.raises(fp.FastpartError) as refused:
        ingest(file, tmp_path / "graph")
    assert said in str(refused.value)
    if said == "is in ":
        assert "m.csv: line 3 and in" in str(refused.value)
        assert "m.csv: line 11." in str(refused.value)


# All of them.


def test_the_verb(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(write(tmp_path, {f"arxiv/{name}": text for name, text in PLAIN.items()}))
    assert main(["ingest", "arxiv", "-o", "graph"]) == 0
    out, said = capsys.readouterr()
    assert "graph: n = 12, m = 5, directed" in out
    assert "arxiv: a raw dataset of OGB" in said
    assert main(["ingest", "arxiv", "--check"]) == 0
    assert "0 problems" in capsys.readouterr().out
    (tmp_path / "lake").mkdir()
    assert main(["ingest", "lake", "-o", "graph2"]) == 2
    assert "`fastpart ingest --guess lake -o schema.yaml` writes a schema" in capsys.readouterr().err


def test_a_file_that_changes_begins_the_work_anew(tmp_path):
    """What is computed from files is known by their states, as files themselves are."""
    folder = write(tmp_path / "small", CSVS)
    before = ingest(folder, tmp_path / "graph").num_edges
    write(folder, {"edges_1.csv": CSVS["edges_1.csv"] + "2,a,1,0,0\n"})
    assert ingest(folder, tmp_path / "graph").num_edges == before + 1
