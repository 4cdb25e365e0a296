"""Mini-batches over all parts, with fastpart's own sampler (``sampled`` and ``bytegnn``)."""
