"""The built-in models of typed graphs."""
