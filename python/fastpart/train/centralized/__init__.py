"""Training on the whole graph in one process, the reference for methods over parts."""
