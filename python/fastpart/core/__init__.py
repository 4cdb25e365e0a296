"""Parameters, options, progress, files and processes, which every package uses."""
