"""What users plug in: models, losses, optimizers and metrics, as names, files or objects."""
