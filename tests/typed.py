"""What a strict type checker says of calls: read by test_typing.py, never run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, assert_type

import numpy as np
import numpy.typing as npt

import fastpart as fp
from fastpart.compat import pymetis

graph = fp.open_graph("g.bin", directedness="directed", io="read", layout="rows", dtype="u64")
fp.open_graph("g.bin", directedness="both")  # type: ignore[arg-type]
fp.open_graph("g.bin", io="map")  # type: ignore[arg-type]
fp.open_graph(graph, directedness=graph.directedness)

assert_type(fp.sigma(graph, 8), fp.VertexPartition)
assert_type(fp.sigma(graph, 8, of="edges", objective="cut"), fp.EdgePartition)
assert_type(fp.algorithms.random(graph, k=8, of="vertices"), fp.VertexPartition)
assert_type(fp.algorithms.dbh(graph, 8), fp.EdgePartition)
fp.sigma(graph, 8, of="records")  # type: ignore[call-overload]
fp.spring(graph, 8, on_infeasible="raise")  # type: ignore[arg-type]
fp.grem(graph, 8, order="none")  # type: ignore[arg-type]
fp.algorithms.hep(graph, 8, tau="fit")
fp.algorithms.hep(graph, 8, tau=2.5)


def either(of: Literal["vertices", "edges"]) -> fp.VertexPartition | fp.EdgePartition:
    return fp.sigma(graph, 8, of=of)


def parts(records: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    return records[:, 0] % 8


assert_type(fp.algorithms.custom(graph, 8, parts, of="edges"), fp.EdgePartition)
assert_type(fp.algorithms.custom(graph, 8, [0, 1]), fp.VertexPartition)

assert_type(fp.open_partition("p", of="edges"), fp.EdgePartition)
assert_type(fp.open_partition("p"), fp.VertexPartition)

p = fp.multilevel(graph, 8)
assert_type(p.assignment, npt.NDArray[np.int32])
for batch in fp.open_partition("parts").loader("train", fanouts=[5]):
    assert_type(batch.global_size, int)
    assert_type(batch.num_sampled_nodes, list[int])
    assert_type(batch.rows, npt.NDArray[np.uint32])
    batch.x, batch.y, batch.edge_index, batch.n_id  # noqa: B018
    batch.x_dict["paper"]  # of a graph with types
    print(batch.edge_label)  # type: ignore[attr-defined]
for of_edges in fp.open_partition("parts").link_loader(fanouts=[5]):
    of_edges.edge_label, of_edges.relation  # noqa: B018
trained = fp.train.full("parts")
assert_type(trained.predict("parts", what="logits"), npt.NDArray[np.float32])
assert_type(trained.predict("parts", restore="graph", out="p.csv"), Path)
assert_type(p.cut_ratio, float)
assert_type(p.evaluate().halo_rf, float)
assert_type(p.evaluate(labels=[0, 1]).label_skew, float)
print(p.evaluate().cut)  # type: ignore[attr-defined]
print(p.rf)  # type: ignore[attr-defined]
np.asarray(p).sum()
np.from_dlpack(p)
assert_type(fp.cluster(graph, "hollocou").modularity, float)
fp.cluster(graph, "louvain")  # type: ignore[arg-type]
fp.convert("a.txt", "a.bin", format="text")
fp.convert("a.txt", "a.bin", format="csv")  # type: ignore[arg-type]

assert_type(pymetis.part_graph(2, [[1], [0]]), pymetis.GraphPartition)
edge_cuts, vertex_part = pymetis.part_graph(2, xadj=[0, 1, 2], adjncy=[1, 0], recursive=False)
assert_type(edge_cuts, int)
assert_type(vertex_part, Sequence[int])
