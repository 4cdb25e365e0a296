"""The training methods, each in a file or a room of its name. Finding a method does not import torch."""
