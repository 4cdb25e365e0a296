"""What the tests of edge partitioners share."""

import numpy as np

import fastpart as fp


def place_loops(edges, parts, k, cap):
    """Return the parts with those of the loops, which are placed after all other records."""
    loads = [0] * k
    holds = {}
    for (u, v), part in zip(edges, parts, strict=True):
        if u != v:
            loads[part] += 1
            holds.setdefault(u, set()).add(part)
            holds.setdefault(v, set()).add(part)
    placed = list(parts)
    for record, (u, v) in enumerate(edges):
        if u == v:
            held = [(loads[p], p) for p in holds.get(u, ()) if cap is None or loads[p] < cap]
            part = placed[record] = min(held or [(load, p) for p, load in enumerate(loads)])[1]
            loads[part] += 1
            holds.setdefault(u, set()).add(part)
    return placed


def same_whatever_the_input(partition, opened, folder):
    """Assert that ``partition`` gives a graph the same parts from a file, an array, and for any number of threads."""
    expected = partition(opened, threads=1)
    edges = np.fromfile(opened.path, np.uint32).reshape(-1, 2)
    n = opened.num_vertices
    inputs = {
        "read": fp.open_graph(opened.path, num_vertices=n, io="read"),
        "array": fp.open_graph(edges, num_vertices=n),
        "int64": fp.open_graph(edges.astype(np.int64), num_vertices=n),
    }
    found = {name: partition(source, threads=2) for name, source in inputs.items()}
    found |= {f"{threads} threads": partition(opened, threads=threads) for threads in (2, 3, 8)}
    found["file"] = partition(opened, out=folder / "parts.npy")
    assert isinstance(found["file"].assignment, np.memmap)
    for name, made in found.items():
        assert np.array_equal(made.assignment, expected.assignment), name
        assert made.assignment.dtype == expected.assignment.dtype, name
        assert (made.loads.tolist(), made.cap) == (expected.loads.tolist(), expected.cap), name
        assert made.checksum == expected.checksum, name
