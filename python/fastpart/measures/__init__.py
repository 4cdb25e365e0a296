"""Measures of partitions, and comparisons of them."""
