"""The stages of an ingest, in units that can be done again."""
