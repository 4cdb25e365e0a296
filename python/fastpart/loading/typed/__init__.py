"""Mini-batches of typed graphs: nodes by type, in-edges by relation."""
