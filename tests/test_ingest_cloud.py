"""Tables in an object store, against a server on the loopback."""

import gzip
import io
import logging
import os
import pickle
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from fastpart.core.options import run_options
from fastpart.errors import EdgeFileChangedError, GraphFormatError
from fastpart.graphs.ingest import ingest
from fastpart.graphs.ingest.catalog import open_catalog
from fastpart.graphs.ingest.documents import read_schema
from fastpart.graphs.ingest.schema import Csv, Format
from fastpart.graphs.ingest.tables import listing, open_table

obstore = pytest.importorskip("obstore")
moto_server = pytest.importorskip("moto.server")

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_REGION": "us-east-1"}


class Lake:
    """A bucket."""

    def __init__(self):
        self.store = obstore.store.from_url("s3://lake", client_options={"allow_http": True})

    def put(self, key, content):
        if isinstance(content, pl.DataFrame):
            file = io.BytesIO()
            content.write_parquet(file)
            content = file.getvalue()
        obstore.put(self.store, key, content)
        return content


@pytest.fixture(scope="module")
def lake():
    """A bucket with a few tables. Polars and obstore find it by the environment, as users set it."""
    logging.getLogger("werkzeug").disabled = True
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ALLOW_HTTP", "true")
        patch.setenv("NO_PROXY", "127.0.0.1")
        _bucket(host, port)
        lake = Lake()
        for name in ("part-10", "part-2", "sub/part-1", "_tmp/part-3", "day=1/x y"):
            lake.put(f"edges/{name}.parquet", pl.DataFrame({"s": [name], "t": ["b"]}))
        lake.put("edges/_SUCCESS", b"")
        yield lake
    listing._store.cache_clear()
    server.stop()


def _bucket(host, port):
    connection = HTTPConnection(host, port)
    connection.request("PUT", "/lake", headers={"Authorization": "AWS x:y"})
    assert connection.getresponse().status == 200
    connection.close()


def names(files, root="s3://lake"):
    return [file.path.removeprefix("s3://lake/edges/") for file in open_table("t", files, None, root).files]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ("s3://lake/edges/part-*.parquet", ["part-10.parquet", "part-2.parquet"]),
        ("edges/**/part-?.parquet", ["_tmp/part-3.parquet", "part-2.parquet", "sub/part-1.parquet"]),
        ("edges", ["day=1/x y.parquet", "part-10.parquet", "part-2.parquet", "sub/part-1.parquet"]),
        ("edges/", ["day=1/x y.parquet", "part-10.parquet", "part-2.parquet", "sub/part-1.parquet"]),
        (["edges/sub", "edges/part-2.parquet"], ["part-2.parquet", "sub/part-1.parquet"]),
        ("edges/part-2.parquet", ["part-2.parquet"]),
    ],
)
def test_files_are_listed(lake, files, found):
    assert names(files) == found


def test_sizes_marks_and_rows(lake):
    content = lake.put("one/x.parquet", pl.DataFrame({"id": ["a", None, "c"]}))
    (file,) = open_table("t", "s3://lake/one/").files
    assert (file.bytes, file.rows, file.dtypes) == (len(content), 3, {"id": pl.String()})
    assert file.mark == obstore.head(lake.store, "one/x.parquet")["e_tag"].strip('"')


def test_columns_that_the_path_tells(lake):
    reader = open_table("t", "s3://lake/edges/day=*/*.parquet")
    assert pl.concat(reader.batches(0, ["s", "day"])).rows() == [("day=1/x y", 1)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b"id;n\na;1\n"),
        ("t.csv.gz", gzip.compress(b"id;n\na;1\n", mtime=0)),
        ("t.ndjson", b'{"id": "a", "n": "1"}\n'),
        ("t.unknown", b"id;n\na;1\n"),
    ],
)
def test_text(lake, name, content):
    lake.put(f"text/{name}", content)
    reader = open_table("t", f"s3://lake/text/{name}", Format(csv=Csv(separator=";")))
    assert pl.concat(reader.batches(0, ["n", "id"])).rows() == [("1", "a")]


def test_a_wrong_id_is_named_with_its_line(lake):
    lake.put("text/bad.csv", b"id\n1\nx\n")
    reader = open_table("t", "s3://lake/text/bad.csv")
    with pytest.raises(GraphFormatError, match=r"s3://lake/text/bad\.csv: line 3: column 'id': 'x'"):
        list(reader.ids(0, ["id"], ["signed"]))


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ("s3://lake/none/*.parquet", r"no file matches the glob.*s3://lake/none/\*\.parquet"),
        ("s3://lake/none.parquet", "no such file or folder.*s3://lake/none"),
        ("s3://lake/none/", "no such file or folder"),
        ("s3://absent-bucket/x.parquet", "no such bucket|no such file or folder"),
        ("s3://absent-bucket/*.parquet", "no such bucket"),
    ],
)
def test_nothing_found(lake, files, said):
    with pytest.raises(FileNotFoundError, match=said) as error:
        open_table("vertices.paper", files)
    assert "vertices.paper.files" in str(error.value)


def test_a_truncated_object(lake):
    content = lake.put("cut/a.parquet", pl.DataFrame({"id": ["a", "b"]}))
    lake.put("cut/b.parquet", content[:-20])
    with pytest.raises(GraphFormatError, match=r"s3://lake/cut/b\.parquet: not a Parquet file: ") as error:
        open_table("t", "s3://lake/cut/")
    assert "\n" not in str(error.value)
    lake.put("cut/b.parquet", b"")
    with pytest.raises(GraphFormatError, match=r"s3://lake/cut/b\.parquet: not a Parquet file: "):
        open_table("t", "s3://lake/cut/")


def test_an_object_that_changes(lake):
    lake.put("change/a.parquet", pl.DataFrame({"id": ["a", "b"]}))
    reader = open_table("t", "s3://lake/change/a.parquet")
    lake.put("change/a.parquet", pl.DataFrame({"id": ["a", "c"]}))
    with pytest.raises(EdgeFileChangedError, match=r"s3://lake/change/a\.parquet changed"):
        list(reader.batches(0, ["id"]))
    reader = open_table("t", "s3://lake/change/a.parquet")
    obstore.delete(lake.store, "change/a.parquet")
    with pytest.raises(EdgeFileChangedError, match="changed"):
        list(reader.batches(0, ["id"]))


def test_a_schema_with_a_root_in_the_store(lake, tmp_path):
    lake.put("mag/papers/0.parquet", pl.DataFrame({"id": ["a", "b"], "tags": [["x"], ["y", "x"]]}))
    lake.put("mag/cites.csv", b"s,t,since\na,b,1970-01-02\nb,a,1970-01-03\n")
    (tmp_path / "schema.yaml").write_text(
        "root: s3://lake/mag/\n"
        "vertices: {paper: {files: papers/*.parquet, id: id, features: [{column: tags, as: onehot}]}}\n"
        "relations: {cites: {files: cites.csv, source: {paper: s}, target: {paper: t}, "
        "features: [{column: since, as: days}]}}\n"
    )
    found = open_catalog(*read_schema(tmp_path / "schema.yaml"), run_options())
    assert found.vertices["paper"].reader.files[0].path == "s3://lake/mag/papers/0.parquet"
    graph = ingest(tmp_path / "schema.yaml", tmp_path / "graph")
    assert (graph.num_vertices, graph.num_edges) == (2, 2)
    assert np.load(tmp_path / "graph/edge_features.npy").tolist() == [[1], [2]]
    lake.put("mag/papers/0.parquet", pl.DataFrame({"id": ["a", "b"], "tags": [["w"], ["y"]]}))
    ingest(tmp_path / "schema.yaml", tmp_path / "next", vocabulary=graph)
    assert np.load(tmp_path / "next/features.npy").tolist() == [[0, 0, 1], [0, 1, 0]]


def test_delta_in_the_store(lake):
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(
        "s3://lake/delta", pl.DataFrame({"id": [1, 2]}), storage_options={"conditional_put": "etag"}
    )
    reader = open_table("t", "s3://lake/delta")
    assert (reader.files[0].mark, reader.files[0].rows) == ("version 0", 2)
    assert pl.concat(reader.batches(0, ["id"]))["id"].sort().to_list() == [1, 2]


def test_iceberg_in_the_store(lake):
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    pyarrow = pytest.importorskip("pyarrow")
    endpoint = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": "us-east-1"}
    secret = {"s3.access-key-id": "x", "s3.secret-access-key": "y"}
    catalog = catalogs.SqlCatalog(
        "c", uri="sqlite:///:memory:", warehouse="s3://lake/ice", **endpoint, **secret
    )
    catalog.create_namespace("n")
    rows = pyarrow.table({"id": pyarrow.array([3, 4], pyarrow.int64())})
    made = catalog.create_table("n.t", schema=rows.schema)
    made.append(rows)
    made.append(rows)
    reader = open_table("t", made.location())
    assert reader.files[0].mark.startswith("snapshot ")
    assert pl.concat(reader.batches(0, ["id"]))["id"].to_list() == [3, 4, 3, 4]


# The web.


class Handler(BaseHTTPRequestHandler):
    """One file, with ranges."""

    content = b""

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.wfile.write(self.answer())

    def answer(self):
        if self.path != "/t.csv":
            self.send_error(404)
            return b""
        content, status = self.content, 200
        self.protocol_version = "HTTP/1.1"
        if "Range" in self.headers:
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            content, status = self.content[int(first) : int(last) + 1], 206
        self.send_response(status)
        if status == 206:
            self.send_header(
                "Content-Range", f"bytes {first}-{int(first) + len(content) - 1}/{len(self.content)}"
            )
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hash(self.content)}"')
        self.send_header("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT")
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        return content

    def log_message(self, *_):
        pass


def test_the_web():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        Handler.content = b"id\na\nb\n"
        reader = open_table("t", f"{url}/t.csv")
        assert reader.files[0].bytes == 7
        assert pl.concat(reader.batches(0, ["id"]))["id"].to_list() == ["a", "b"]
        Handler.content = b"id\na\nc\n"
        with pytest.raises(EdgeFileChangedError):
            list(reader.batches(0, ["id"]))
        with pytest.raises(FileNotFoundError, match="no such file"):
            open_table("t", f"{url}/none.csv")
    finally:
        server.shutdown()
        server.server_close()


# The one door.


def test_open_graph_takes_a_url(lake, caplog):
    caplog.set_level("INFO", "fastpart")
    for name, rows in {"a": [[5, 7], [7, 9]], "b": [[0, 9]]}.items():
        frame = pl.DataFrame(rows, schema=["source", "target"], orient="row")
        lake.put(f"graph/{name}.parquet", frame.with_columns(w=pl.lit(0.5), x=pl.lit("y")))
    expected = fp.open_graph([[5, 7], [7, 9], [0, 9]])
    for url in ("s3://lake/graph/", "s3://lake/graph/*.parquet"):
        for _ in range(2):
            graph = fp.open_graph(url)
            assert (graph.identify(), graph.path) == (expected.identify(), None)
        assert pickle.loads(pickle.dumps(graph)) == graph
    assert (
        sum("read from its conversion" in text for text in caplog.messages) == 5
    )  # both name the same files
    assert fp.open_graph("s3://lake/graph/", weights="w").weight_scale > 1
    assert fp.open_graph("s3://lake/graph/", columns=("target", 1)).identify() != expected.identify()
    lake.put("graph/b.parquet", pl.DataFrame({"source": [0], "target": [8]}))
    assert fp.open_graph("s3://lake/graph/").identify() != expected.identify()
    with pytest.raises(GraphFormatError, match=r"graph/b\.parquet: it has no column 'w'"):
        fp.open_graph("s3://lake/graph/", weights="w")
    with pytest.raises(FileNotFoundError, match="s3://lake/none"):
        fp.open_graph("s3://lake/none.parquet")


def test_the_column_of_weights_holds_no_ids_in_a_url(lake):
    lake.put("weighted/a.parquet", pl.DataFrame({"a": [0, 1], "b": [1, 2], "w": [3, 4]}))
    graph = fp.open_graph("s3://lake/weighted/", weights="w")
    assert (graph.identify(), graph.weights.tolist()) == (fp.open_graph([[0, 1], [1, 2]]).identify(), [3, 4])


def test_open_graph_takes_strings_from_a_url_and_a_lazy_frame(lake):
    frame = pl.DataFrame({"source": ["ann", "bob"], "target": ["bob", "eve"], "x": [1, 2]})
    lake.put("names/a.parquet", frame)
    expected = fp.open_graph([[0, 1], [1, 2]])
    url = "s3://lake/names/a.parquet"
    for source in (url, pl.scan_parquet(url).select("source", "target")):
        graph = fp.open_graph(source)
        assert graph.identify() == expected.identify()
        ids = pl.read_parquet(graph.directory / "ids" / "vertex.parquet")
        assert ids["id"].to_list() == ["ann", "bob", "eve"]
