"""The folder of a training, and what is kept there."""
