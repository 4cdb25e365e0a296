"""The plan of epochs: the rows of every batch are known before, so they lie behind each other on the disk."""
