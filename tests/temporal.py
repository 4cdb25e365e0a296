"""Graphs with times, and the definition of temporal samples in plain Python."""

import numpy as np

import fastpart as fp

NO_TIME = np.iinfo(np.int64).min


def in_edges(n, records, times, edge_times):
    """Return [(source, edge id, its time, that of its source)] of each vertex, in the order of the records."""
    found = [[] for _ in range(n)]
    of_edges = np.full(len(records), NO_TIME) if edge_times is None else edge_times
    of_vertices = np.full(n, NO_TIME) if times is None else times
    for r, (u, v) in enumerate(np.asarray(records).tolist()):
        found[v].append((u, r, of_edges[r], of_vertices[u]))
        if u != v:
            found[u].append((v, len(records) + r, of_edges[r], of_vertices[v]))
    return found


def early(edges, time):
    """Return the in-edges that were there before a time."""
    return [edge for edge in edges if max(edge[2:]) < time]


def latest(edges, count, timed_edges):
    """Return the latest of some in-edges, in the order of the records."""
    places = sorted(
        range(len(edges)), key=lambda place: (edges[place][2 if timed_edges else 3], place), reverse=True
    )
    return [edges[place] for place in sorted(places[:count])]


def timed_graph(n=300, m=4000, seed=0):
    """Return records with hubs, times of vertices and times of edges, some of which are missing."""
    rng = np.random.default_rng(seed)
    ends = (n * rng.random((m, 2)) ** 3).astype(np.uint32)
    ends[:, 1] = rng.permutation(n)[ends[:, 1]]
    times, edge_times = rng.integers(0, 60, n), rng.integers(0, 100, m)
    times[::11] = edge_times[::13] = NO_TIME
    return ends, times, edge_times


def save(folder, n, records, k, times=None, edge_times=None, **rows):
    """Save a random partition, and open it."""
    graph = fp.open_graph(records, num_vertices=n)
    partition = fp.algorithms.random(graph, k=min(k, n), of="vertices")
    partition.save(folder, graph=graph, times=times, edge_times=edge_times, **rows)
    return fp.open_partition(folder, of="vertices")
