"""Names of files in the folder of a training."""

EMBEDDINGS = "embeddings.npy"
"""The learned rows of all vertices."""
