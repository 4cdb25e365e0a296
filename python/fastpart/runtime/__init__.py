"""Processes that work together: how they are started, watched and heard, and what else has started several of them."""
