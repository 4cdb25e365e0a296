"""The graphs that the layers of networks compute on."""
