"""Training by workers: processes that each look after some of the parts and agree on the weights in every round.

They are started on this machine, or by ``torchrun``, perhaps on several. What a worker does is a method's own; all the
rest is here.
"""
