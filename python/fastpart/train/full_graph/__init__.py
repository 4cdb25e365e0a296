"""Code that the full-batch methods over parts share: sums, messages, and the training."""
