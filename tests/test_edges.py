"""Edges from arrays and files: every form reads the same, and the number of vertices is what was said."""

import gc

import numpy as np
import polars as pl
import pytest
from hypothesis import given

import fastpart as fp
import oracles
from soaked import examples
from strategies import edge_lists, raw

TRIANGLE = np.array([[0, 1], [1, 2], [2, 0]], dtype=np.uint32)


@pytest.fixture
def graph(tmp_path):
    """A raw file of three records."""
    return raw(tmp_path / "g.bin", TRIANGLE)


# One graph in every container.


def arrays(edges):
    """Yield (name, array, options) for every form an array may have."""
    m = len(edges)
    for dtype in ("<u4", "<i4", "<u8", "<i8", ">u4", ">i4", ">u8", ">i8"):
        yield dtype, edges.astype(dtype), {}
    for dtype in ("<u4", ">i8"):
        typed = edges.astype(dtype)
        yield f"{dtype} Fortran", np.asfortranarray(typed), {}
        yield f"{dtype} every other row", np.repeat(typed, 2, axis=0)[::2], {}
        yield f"{dtype} columns of a wider array", np.repeat(typed, 3, axis=1)[:, ::3], {}
        yield f"{dtype} from the back", typed[::-1].copy()[::-1], {}
        yield f"{dtype} columns swapped twice", typed[:, ::-1].copy()[:, ::-1], {}
        misaligned = np.frombuffer(b"\0" + typed.tobytes(), np.uint8)[1:].view(dtype).reshape(m, 2)
        yield f"{dtype} misaligned, read-only", misaligned, {}
        yield f"{dtype} edge index", typed.T.copy(), {"layout": "edge_index"}
        yield f"{dtype} transposed", typed.T, {"layout": "edge_index"}
    yield "rows", edges, {"layout": "rows"}
    yield "Polars", pl.DataFrame({"u": edges[:, 0], "v": edges[:, 1].astype(np.int64)}), {}
    yield "Polars in chunks", pl.concat([pl.DataFrame(edges, schema=["u", "v"])[:1],
                                         pl.DataFrame(edges, schema=["u", "v"])[1:]], rechunk=False), {}  # fmt: skip


def files(edges, folder):
    """Yield (name, path, options) for every kind of file."""
    for name in ("u32", "i32", "u64", "i64"):
        path = raw(
            folder / f"{name}.bin",
            edges,
            name.replace("u", "<u").replace("i", "<i")[:2] + str(int(name[1:]) // 8),
        )
        yield name, path, {"dtype": name}
        yield f"{name} read", path, {"dtype": name, "io": "read"}
    for name, array, options in arrays(edges):
        if isinstance(array, np.ndarray):
            path = folder / f"{name}.npy"
            np.save(path, array)
            yield f"{name}.npy", path, options
            yield f"{name}.npy read", path, {**options, "io": "read"}


def identities(edges, n, sources):
    """Check that every source reads as ``edges``."""
    records = edges.tolist()
    loops = sum(u == v for u, v in records)
    degrees = oracles.degrees(n, records)
    expected = fp.open_graph(edges, num_vertices=n).identify()
    for name, source, options in sources:
        opened = fp.open_graph(source, num_vertices=n, **options)
        assert (opened.num_vertices, opened.num_edges) == (n, len(edges)), name
        assert opened.identify() == expected, name
        assert expected[0] == loops
        assert opened.degrees().tolist() == degrees, name


# 27, 28: the checksum says that the records agree, one by one and in order.
@examples(10)
@given(edge_lists(9, 20))
def test_array_forms_agree_record_for_record(graph):
    n, edges = graph
    identities(edges, n, arrays(edges))


def test_file_forms_agree_record_for_record(tmp_path):
    random = np.random.default_rng(3)
    for m in (0, 1, 2, 3, 40):
        edges = random.integers(0, 12, (m, 2), dtype=np.uint32)
        identities(edges, 12, files(edges, tmp_path))


def test_file_forms_give_the_same_partition(tmp_path):
    edges = np.random.default_rng(4).integers(0, 60, (300, 2), dtype=np.uint32)
    expected = fp.spring(edges, k=4, batch=1).assignment
    for name, source, options in [*files(edges, tmp_path), *arrays(edges)]:
        opened = fp.open_graph(source, num_vertices=60, **options)
        assert (fp.spring(opened, k=4, batch=1).assignment == expected).all(), name


def test_files_of_more_than_one_block_agree_with_arrays(tmp_path):
    edges = np.random.default_rng(5).integers(0, 5000, (150_000, 2), dtype=np.uint32)
    np.save(tmp_path / "rows.npy", edges)
    np.save(tmp_path / "columns.npy", edges.T.astype(">i8"))
    identity = fp.open_graph(edges).identify()
    for io in ("mmap", "read"):
        assert fp.open_graph(raw(tmp_path / "g.bin", edges), io=io).identify() == identity
        assert fp.open_graph(tmp_path / "rows.npy", io=io).identify() == identity
        assert fp.open_graph(tmp_path / "columns.npy", io=io).identify() == identity


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_torch_edge_index_agrees(dtype):
    import torch

    edges = np.random.default_rng(6).integers(0, 9, (20, 2))
    index = torch.tensor(edges.T, dtype=getattr(torch, dtype))
    identities(edges.astype(np.uint32), 9, [("contiguous", index.contiguous(), {}), ("view", index, {})])
    rows = torch.tensor(edges, dtype=torch.int64)
    identities(edges.astype(np.uint32), 9, [("rows", rows, {"layout": "rows"}), ("transposed", rows.T, {})])
    square = torch.tensor([[0, 1], [2, 3]])
    assert fp.open_graph(square).degrees().tolist() == [1, 1, 1, 1]
    assert fp.open_graph(square).identify() == fp.open_graph(np.array([[0, 2], [1, 3]])).identify()


def test_a_square_array_is_read_by_rows_unless_told():
    square = np.array([[0, 1], [0, 2]])
    assert fp.open_graph(square).degrees().tolist() == [2, 1, 1]
    assert fp.open_graph(square, layout="edge_index").degrees().tolist() == [0, 1, 1]
    wide = np.array([[0, 1, 2], [1, 2, 0]])
    assert fp.open_graph(wide).num_edges == 3


def test_an_array_is_kept_alive():
    edges = fp.open_graph(np.repeat(TRIANGLE, 10_000, axis=0).astype(np.int64))
    gc.collect()
    np.ones(60_000, np.int64)  # would be where the array was
    assert edges.degrees().tolist() == [20_000] * 3


def test_edges_describe_themselves(graph):
    edges = fp.open_graph(graph, directedness="directed")
    assert (edges.directedness, edges.path, edges.dtype) == ("directed", graph, "u32")
    assert repr(edges) == f"<Graph {str(graph)!r}: n=3, m=3, directed>"
    assert fp.open_graph(edges) is edges
    array = fp.open_graph(TRIANGLE)
    assert (array.directedness, array.path, array.dtype, array.notes) == ("undirected", None, None, ())


def test_degrees_are_read_only():
    degrees = fp.open_graph(TRIANGLE).degrees()
    assert degrees.dtype == np.uint32
    with pytest.raises(ValueError, match="read-only"):
        degrees[0] = 7


# 15: more records than 32 bits count. The file is a hole; reading, unlike mapping, fills no memory with it.
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_more_than_2_to_the_32_records(tmp_path):
    m = 2**32 + 1
    with open(tmp_path / "g.bin", "wb") as file:
        file.truncate(8 * m)
    edges = fp.open_graph(tmp_path / "g.bin", dtype="u32", io="read")
    assert (edges.num_vertices, edges.num_edges) == (1, m)
    partition = fp.spring(edges, k=1)
    assert (partition.num_edges, partition.loops, partition.assignment.tolist()) == (m, m, [0])


# The number of vertices.


def test_without_a_word_n_is_the_largest_id_plus_1_with_a_warning(graph):
    for call in (fp.open_graph, fp.info, lambda file: fp.spring(file, k=2)):
        with pytest.warns(
            fp.errors.GraphWarning, match=r"g\.bin: assumed n = 3, the largest id \+ 1\. "
        ) as seen:
            call(graph)
        assert [warning.filename for warning in seen] == [__file__]
    with pytest.warns(fp.errors.GraphWarning):
        edges = fp.open_graph(graph)
    assert edges.num_vertices == 3
    assert edges.notes == (str(seen[0].message),)


@pytest.mark.filterwarnings("error")
def test_what_is_known_is_no_warning(graph):
    fp.open_graph(graph, num_vertices=3)
    fp.open_graph(TRIANGLE)
    fp.open_graph(TRIANGLE.tolist())


@pytest.mark.parametrize("source", ["file", "array"])
def test_num_vertices_adds_isolated_vertices_and_bounds_ids(graph, source):
    source = graph if source == "file" else TRIANGLE
    edges = fp.open_graph(source, num_vertices=5)
    assert edges.notes == ()
    assert edges.degrees().tolist() == [2, 2, 2, 0, 0]
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"record 1 holds the id 2, outside 0\.\.2\. Pass num_vertices=3"
    ):
        fp.open_graph(source, num_vertices=2).degrees()
    with pytest.raises(fp.errors.GraphFormatError, match=r"record 0 holds the id 0, outside 0\.\.0"):
        fp.open_graph(source, num_vertices=0).degrees()


@pytest.mark.parametrize("name", ["num_vertices", "max_vertices"])
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (-1, fp.errors.ParameterError),
        (2**32, fp.errors.ParameterError),
        (3.0, TypeError),
        (True, TypeError),
        ("3", TypeError),
    ],
)
def test_numbers_of_vertices_that_are_refused(name, value, error):
    with pytest.raises(error, match=f"{name}: "):
        fp.open_graph(TRIANGLE, **{name: value})


# 11
@pytest.mark.parametrize("source", ["file", "array"])
def test_huge_ids_are_refused_before_allocation(tmp_path, source):
    records = np.array([[0, 2**32 - 2], [0, 1]], np.uint32)
    relabel = "--relabel" if source == "file" else "relabel=True"
    source = raw(tmp_path / "g.bin", records) if source == "file" else records
    said = r"max id 4294967294 implies 4294967295 vertices and 137\.4 GB of state"
    with pytest.raises(fp.errors.GraphFormatError, match=rf"{said}.*{relabel}.*max_vertices=4294967295"):
        fp.open_graph(source)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"{said}\. That exceeds max_vertices=9\. Raise it"):
        fp.open_graph(source, max_vertices=9)
    edges = fp.open_graph(source, max_vertices=2**32 - 1)
    assert edges.num_vertices == 2**32 - 1
    with pytest.raises(
        fp.errors.MemoryBudgetError, match=r"spring on 4294967295 vertices.* needs 137\.4 GB.*1\.1 GB"
    ):
        fp.spring(edges, k=2, memory_limit="1G")
    with pytest.raises(fp.errors.MemoryBudgetError, match=r"degrees needs .* the budget is 1\.1 GB"):
        edges.degrees(memory_limit="1G")


# 11: the sentinel is no id.
def test_the_largest_u32_is_no_id(tmp_path):
    path = raw(tmp_path / "g.bin", [[0, 2**32 - 1]])
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"record 0 holds the id 4294967295.*up to 2\^32 - 2\. Relabel"
    ):
        fp.open_graph(path)


def test_max_vertices_admits_and_refuses():
    assert fp.open_graph(TRIANGLE, max_vertices=3).num_vertices == 3
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"max id 2 implies 3 vertices.*max_vertices=2\. Raise it"
    ):
        fp.open_graph(TRIANGLE, max_vertices=2)


# Arrays.


# 27
@pytest.mark.parametrize("dtype", [bool, "f4", "f8", "c16", "O", "M8[s]", "V8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_other_types_are_refused(dtype, order):
    array = np.zeros((3, 2), dtype=dtype, order=order)
    with pytest.raises(TypeError, match=r"expected integers or strings, got an array of dtype .*astype"):
        fp.open_graph(array)


# 27
@pytest.mark.parametrize("shape", [(), (6,), (3, 3), (1, 3, 2), (0, 0), (2, 3, 2)])
@pytest.mark.parametrize("layout", [None, "rows", "edge_index"])
def test_arrays_of_other_shapes_are_refused(shape, layout):
    with pytest.raises(TypeError, match=r"graph: expected an array of shape \(.*\), got \("):
        fp.open_graph(np.zeros(shape, np.uint32), layout=layout)


# 27
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ([[0, 1], [1]], "lists of different lengths"),
        (3.5, "got float"),
        (object(), "got object"),
        (TRIANGLE[:2].view(np.matrix), "one-dimensional"),
        (
            pl.DataFrame({"a": [0], "b": [1], "c": [2]}),
            "the polars frame: which columns hold the ids.*columns=",
        ),
        (pl.DataFrame({"u": [0], "v": [1.0]}), "column 'v' is Float64"),
        (pl.DataFrame({"u": ["a"], "v": [1]}), "column 'u' is String"),
        (np.ma.masked_array(TRIANGLE, mask=TRIANGLE == 2), "masked"),
    ],
)
def test_objects_that_hold_no_edges_are_refused(source, text):
    with pytest.raises(TypeError, match=text):
        fp.open_graph(source)


def test_dtype_is_for_files():
    with pytest.raises(fp.errors.ParameterError, match="dtype: applies to raw files"):
        fp.open_graph(TRIANGLE, dtype="u32")


@pytest.mark.parametrize("layout", ["rows", "edge_index"])
def test_broadcast_arrays_are_read_as_they_look(layout):
    rows = np.broadcast_to(np.array([3, 1], np.int64), (5, 2))
    edges = fp.open_graph(rows if layout == "rows" else rows.T, layout=layout)
    assert edges.degrees().tolist() == [0, 5, 0, 5]
