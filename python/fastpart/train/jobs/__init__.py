"""Training by workers. Each is a process with some of the parts. They agree on the weights in every round.

Workers are started on this machine, or by ``torchrun`` on one or several. Methods define the workers. Everything else
is here.
"""
