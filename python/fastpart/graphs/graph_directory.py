"""A graph directory: edges with the ids, features, labels, splits and times that came with them."""

from __future__ import annotations

MARKER = "graph.json"
"""The file that marks a graph directory and describes it."""

EDGES = "edges.bin"

RELATION_FILES = {"features.npy": "edge_features.npy"}
"""Names of the files of a relation at the top of the directory of a single relation, where they differ."""
