"""Partitions of graphs: the algorithms, their results, the data of their parts."""
