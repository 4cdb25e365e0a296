"""The data of a training: a partition directory, and learned rows of vertices without features."""
