"""What every room uses: parameters, options, progress, files and processes."""
