"""Batches as a graph of small tasks, and the scheduler that launches and runs them."""

from .dag import BatchState, Dag, Operator, Pieces
from .launching import Launching
from .scheduler import Scheduler
from .trace import Trace

__all__ = ["BatchState", "Dag", "Launching", "Operator", "Pieces", "Scheduler", "Trace"]
