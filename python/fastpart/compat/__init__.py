"""Functions with the names and the signatures of other packages, for programs that are written for those."""
