"""The training methods, in files of their names. Nothing here imports torch."""
