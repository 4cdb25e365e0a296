"""Full batches over parts of the edges (DistGNN). Copies of vertices exchange partial sums."""
