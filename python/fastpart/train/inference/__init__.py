"""Exact outputs of a network for all vertices, from whole neighbourhoods."""
