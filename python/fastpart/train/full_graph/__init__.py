"""Full batches over parts, one worker for each: ``totals`` is DistGNN, ``blocks`` is SANCUS, the rest is shared."""
