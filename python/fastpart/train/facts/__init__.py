"""Learned rows of vertices, with rows of relations, and no encoder: knowledge graph embeddings."""
