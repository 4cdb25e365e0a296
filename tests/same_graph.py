"""A small graph as text, Parquet and array, and whether what was opened is that graph."""

import io

import numpy as np
import polars as pl

import fastpart as fp

RECORDS = np.array([[5, 7], [7, 9], [0, 9], [3, 3]], np.uint32)


def text(separator=" ", header="", records=RECORDS):
    lines = (separator.join(map(str, record)) for record in np.asarray(records, object).tolist())
    return (header + "\n".join(lines) + "\n").encode()


def parquet(**columns):
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def same(graph, records=RECORDS, n=10):
    array = fp.open_graph(np.asarray(records).reshape(-1, 2), num_vertices=n, layout="rows")
    assert (graph.num_vertices, graph.num_edges) == (n, len(records))
    assert graph.identify() == array.identify()
    return graph
