"""Partition directories with edge splits, for the tests of links."""

import tempfile

import numpy as np
from hypothesis import strategies as st

import fastpart as fp

DIRECTEDNESS = ("undirected", "symmetric", "directed")


def graph_of(records, n, directedness="undirected"):
    """Return a graph of records. A symmetric one lists both directions."""
    records = np.asarray(records).reshape(-1, 2)
    if directedness == "symmetric":
        records = np.concatenate([records, records[records[:, 0] != records[:, 1]][:, ::-1]])
    return fp.open_graph(records, num_vertices=n, directedness=directedness, layout="rows")


def random_graph(n=60, m=240, directedness="undirected", seed=0):
    """Return a graph with loops, parallel records, reverse records and isolated vertices."""
    random = np.random.default_rng(seed)
    records = random.integers(0, n - 3, (m, 2))
    records[:4, 1] = records[:4, 0]
    records[4:12] = records[20:28]
    records[12:20] = records[20:28, ::-1]
    return graph_of(records, n, directedness)


@st.composite
def graphs(draw):
    """Return a small graph of any kind, with at least three vertices."""
    n = draw(st.integers(3, 14))
    ids = st.integers(0, n - 1)
    records = draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=40))
    return graph_of(np.array(records), n, draw(st.sampled_from(DIRECTEDNESS)))


def stored(splits, assignment, k, **saved):
    """Save the training graph by an assignment, and open it. The directory stays until the tests end."""
    folder = f"{tempfile.mkdtemp(prefix='fastpart-links-')}/parts"
    p = fp.VertexPartition(assignment, k)
    p.save(folder, graph=splits.graph, edge_splits=splits, **saved)
    return fp.open_partition(folder)


def dealt(n, k, seed=0):
    """Return a random assignment, which may leave parts empty."""
    return np.random.default_rng(seed).integers(0, k, n)


def records_of(graph):
    """Return the records as an array."""
    return graph._source.block(0, graph.num_edges).astype(np.int64)


def either(pairs):
    """Return the pairs as a set, whatever their direction."""
    return {frozenset(map(int, pair)) for pair in pairs}


def message_pairs(batch):
    """Return the ends of all in-edges of a batch, whatever their direction."""
    return either(batch.n_id[batch.edge_index].T.tolist())


def labelled(batch):
    """Return source, target and label of each pair of a batch, by id."""
    ends = batch.n_id[batch.edge_label_index].T.tolist()
    return [(*pair, label) for pair, label in zip(ends, batch.edge_label.tolist(), strict=True)]
