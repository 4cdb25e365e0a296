"""Mini-batches that other processes make: Armada's batch workers and compute workers.

Nothing is imported here, because batch workers and receivers run without torch.
"""
