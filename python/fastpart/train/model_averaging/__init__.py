"""Model averaging (SDT-GNN): a copy of the model trains on every part with its halo."""
