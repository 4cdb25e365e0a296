"""What the methods that train with full batches over a divided graph share: sums, messages, and the training."""
