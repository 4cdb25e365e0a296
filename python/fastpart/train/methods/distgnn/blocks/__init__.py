"""Full batches over blocks of rows (SANCUS). Parts broadcast their rows unless recent copies are good enough."""
