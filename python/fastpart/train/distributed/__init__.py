"""DGL's distributed engine: sampled mini-batches, one server and several trainers per part."""
