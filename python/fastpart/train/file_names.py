"""Names of files in the folder of a training."""

EMBEDDINGS = "embeddings.npy"
"""The learned rows of all vertices."""

HARD_NEGATIVES = "hard-negatives.npy"
"""Hard negatives, among the temporary files."""
