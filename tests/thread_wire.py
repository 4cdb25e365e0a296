"""Threads that talk as the processes of full-batch training do, so that many small cases are tried in little time."""

import queue
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

PATIENCE = 60.0


class Posted:
    def __init__(self, wire, tag, received, counts):
        self._wire, self._tag, self._received, self._counts = wire, tag, received, counts

    def wait(self):
        for peer, rows in enumerate(self._received.split(self._counts)):
            rows.copy_(self._wire.take(peer, self._tag))
        return self._received


class ThreadWire:
    """A wire of ``fastpart.train.methods.distgnn.wire`` between threads."""

    def __init__(self, rank, size, boxes):
        self.rank, self.size, self._boxes = rank, size, boxes
        self.sent = self.received = 0
        self._swaps = 0

    def take(self, peer, tag):
        return self._boxes[peer, self.rank, tag].get(timeout=PATIENCE)

    def _put(self, peer, tag, x):
        self._boxes[self.rank, peer, tag].put(x.detach().clone())

    def swap(self, x, out, into, late=False):
        assert x.is_contiguous()
        assert len(out) == len(into) == self.size
        self._swaps += 1
        tag = ("swap", self._swaps)
        for peer, rows in enumerate(x.split(out)):
            self._put(peer, tag, rows)
        received = x.new_empty((sum(into), *x.shape[1:]))
        self.sent += x.numel() * x.element_size()
        self.received += received.numel() * x.element_size()
        return Posted(self, tag, received, into)

    def subgroups(self, members):
        pass

    def broadcast(self, x, source, readers):
        tag = ("broadcast", source)  # those who do not take part do not call
        for peer in sorted(set(readers) - {source}) if x.numel() else []:
            if self.rank == source:
                self.sent += x.numel() * x.element_size()
                self._put(peer, tag, x)
            elif self.rank == peer:
                self.received += x.numel() * x.element_size()
                x.copy_(self.take(source, tag))

    def reduce(self, x, root, writers):
        tag = ("reduce", root)
        for peer in sorted(set(writers) - {root}) if x.numel() else []:
            if self.rank == peer:
                self.sent += x.numel() * x.element_size()
                self._put(root, tag, x)
            elif self.rank == root:
                self.received += x.numel() * x.element_size()
                x.add_(self.take(peer, tag))

    def total(self, x):
        for peer in range(self.size):
            self._put(peer, "total", x)
        x.zero_()
        for peer in range(self.size):
            x.add_(self.take(peer, "total"))
        return x


class _Boxes(defaultdict):
    def __init__(self):
        super().__init__(queue.SimpleQueue)
        self._lock = threading.Lock()

    def __getitem__(self, key):
        with self._lock:
            return super().__getitem__(key)


def _compute_alone():
    """Keep torch from starting threads of its own in each thread, which would wait for processors."""
    import torch  # the tests that need it skip without it

    torch.set_num_threads(1)


def together(size, work):
    """Return what ``work(wire)`` returns in each of so many threads."""
    boxes = _Boxes()
    with ThreadPoolExecutor(size, initializer=_compute_alone) as pool:
        futures = [pool.submit(work, ThreadWire(rank, size, boxes)) for rank in range(size)]
        return [future.result(timeout=PATIENCE) for future in futures]
