"""Classification and regression of edges, with fastpart's own sampler."""
