"""Threads that talk as the processes of full-batch training do, so that many small cases are tried in little time."""

import queue
import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

PATIENCE = 20.0


class Posted:
    def __init__(self, wire, into, tags):
        self._wire, self._into, self._tags = wire, into, tags

    def wait(self):
        for peer, x in self._into.items():
            x.copy_(self._wire.take(peer, self._tags[peer]))


class ThreadWire:
    """A wire of ``fastpart.train.full_graph.wire`` between threads."""

    def __init__(self, rank, size, boxes):
        self.rank, self.size, self._boxes = rank, size, boxes
        self.sent = self.received = 0
        self._told = Counter()

    def take(self, peer, tag):
        return self._boxes[peer, self.rank, tag].get(timeout=PATIENCE)

    def _put(self, peer, tag, x):
        self._boxes[self.rank, peer, tag].put(x.detach().clone())

    def post(self, out, into):
        for peer, x in out.items():
            assert x.numel()
            assert x.is_contiguous()
            self.sent += x.numel() * x.element_size()
            self._told["to", peer] += 1
            self._put(peer, self._told["to", peer], x)
        self._told.update(("from", peer) for peer in into)
        self.received += sum(x.numel() * x.element_size() for x in into.values())
        return Posted(self, into, {peer: self._told["from", peer] for peer in into})

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


def together(size, work):
    """Return what ``work(wire)`` returns in each of so many threads."""
    boxes = _Boxes()
    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(work, ThreadWire(rank, size, boxes)) for rank in range(size)]
        return [future.result(timeout=PATIENCE) for future in futures]
