"""Graphs: opened, generated, converted, weighted, split."""
