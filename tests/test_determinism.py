"""The same records, parameters and seed: the same partition, whatever the threads, the I/O and the container."""

import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from soaked import some_of
from strategies import configs, edge_lists

pytestmark = pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")

THREADS = (1, 2, 3, 8)


def stored(folder, edges):
    """Open the same edges from files of every kind."""
    n = int(edges.max(initial=0)) + 1
    for dtype in ("u32", "u64"):
        path = folder / f"edges.{dtype}"
        edges.astype(f"<{dtype[0]}{int(dtype[1:]) // 8}").tofile(path)
        for io in ("mmap", "read"):
            yield f"{dtype}, {io}", fp.open_graph(path, dtype=dtype, num_vertices=n, io=io)
    layouts = {
        "rows": edges,
        "fortran": np.asfortranarray(edges),
        "edge_index": np.ascontiguousarray(edges.T),
        "big-endian": edges.astype(">i8"),
    }
    for name, array in layouts.items():
        np.save(folder / f"{name}.npy", array)
        for io in ("mmap", "read"):
            layout = "edge_index" if name == "edge_index" else "rows"
            yield (
                f"{name}.npy, {io}",
                fp.open_graph(folder / f"{name}.npy", num_vertices=n, io=io, layout=layout),
            )


def in_memory(edges):
    """Open the same edges from arrays of every kind."""
    n = int(edges.max(initial=0)) + 1
    padded = np.zeros((len(edges), 5), np.int32)
    padded[:, 1:4:2] = edges
    shifted = np.zeros(edges.size * 4 + 1, np.uint8)[1:].view(np.uint32).reshape(-1, 2)
    shifted[:] = edges
    arrays = {
        "uint32": edges.astype(np.uint32),
        "int32": edges.astype(np.int32),
        "uint64": edges.astype(np.uint64),
        "int64": edges.astype(np.int64),
        "big-endian": edges.astype(">u4"),
        "fortran": np.asfortranarray(edges),
        "strided": padded[:, 1:4:2],
        "reversed": np.ascontiguousarray(edges[::-1])[::-1],
        "misaligned": shifted,
    }
    for name, array in arrays.items():
        yield name, fp.open_graph(array, num_vertices=n, layout="rows")
    yield "edge_index", fp.open_graph(np.ascontiguousarray(edges.T), num_vertices=n, layout="edge_index")
    yield "polars", fp.open_graph(pl.DataFrame({"u": edges[:, 0], "v": edges[:, 1]}), num_vertices=n)


@given(edge_lists(40, 150), configs())
def test_threads_on_small_graphs(graph, config):
    n, edges = graph
    opened = fp.open_graph(edges, num_vertices=n)
    parts = [fp.spring(opened, **config, threads=threads).assignment for threads in THREADS]
    for part in parts[1:]:
        np.testing.assert_array_equal(part, parts[0])


@given(edge_lists(20, 60), st.integers(1, 6), st.sampled_from([None, 5]))
def test_containers_of_small_graphs(graph, k, batch):
    _, edges = graph
    with tempfile.TemporaryDirectory() as folder:
        parts = {
            name: fp.spring(opened, k, batch=batch)
            for name, opened in [*in_memory(edges), *stored(Path(folder), edges)]
        }
    for name, part in parts.items():
        np.testing.assert_array_equal(part.assignment, parts["uint32"].assignment, name)
        assert part.checksum == parts["uint32"].checksum, name


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """An R-MAT above 2**18 records, from where on the default rule works in batches."""
    path = tmp_path_factory.mktemp("large") / "g.bin"
    return fp.generate.rmat(path, n=1 << 16, m=600_000, seed=7)


@pytest.mark.parametrize(
    ("batch", "io"),
    some_of(
        product([None, 1, 20_000, 1 << 16, 600_000], ["mmap", "read"]), [(None, "mmap"), (20_000, "read")]
    ),
)
def test_threads_on_a_large_graph(large, batch, io):
    opened = fp.open_graph(large.path, io=io)
    parts = [fp.spring(opened, 8, batch=batch, passes=2, threads=threads).assignment for threads in THREADS]
    for part in parts[1:]:
        np.testing.assert_array_equal(part, parts[0])


def test_containers_of_a_large_graph(large, tmp_path):
    edges = np.fromfile(large.path, np.uint32).reshape(-1, 2)[:300_000]
    expected = fp.spring(edges, 8)
    for name, opened in [*in_memory(edges), *stored(tmp_path, edges)]:
        partition = fp.spring(opened, 8)
        np.testing.assert_array_equal(partition.assignment, expected.assignment, name)
        assert partition.checksum == expected.checksum, name


def test_seed_of_an_algorithm_without_random_choices_changes_nothing(large):
    for seed in (1, 2**64 - 1):
        np.testing.assert_array_equal(
            fp.spring(large, 8, seed=seed).assignment, fp.spring(large, 8).assignment
        )


@pytest.mark.parametrize("threads", some_of(THREADS, [2]))
def test_measures_and_degrees(large, threads):
    partition = fp.spring(large, 70)
    once, again = (fp.evaluate(large, partition, threads=count) for count in (1, threads))
    assert once.parts.equals(again.parts)
    assert once.summary.equals(again.summary)
    np.testing.assert_array_equal(large.degrees(threads=1), large.degrees(threads=threads))


@pytest.mark.parametrize("threads", some_of(THREADS, [3]))
def test_generated_and_converted_files(tmp_path, threads):
    for count in (1, threads):
        folder = tmp_path / str(count)
        folder.mkdir(exist_ok=True)
        fp.generate.rmat(folder / "rmat.bin", n=1000, m=1_200_000, seed=1, threads=count)
        fp.generate.planted(folder / "planted.bin", n=1000, m=100_000, features=3, seed=1, threads=count)
        np.savetxt(folder / "text.txt", np.arange(60_000).reshape(-1, 2), fmt="%d")
        fp.convert(folder / "text.txt", folder / "text.bin", relabel=True, threads=count)
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert len(names) == 2 + 5 + 4
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / str(threads) / name).read_bytes(), name
