"""What a worker learns with: the network, its loss, its optimizer and its scores."""
