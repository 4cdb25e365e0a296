"""GREM in plain Python; what the partitioner in memory answers is asked of the core."""

import math

import numpy as np

import fastpart as fp
from splitmix import splitmix64

KEPT = np.float32(0.8)


class Sides:
    """One bisection after its first chunk, with counts in float32 as the core has them."""

    def __init__(self, n, caps, rule):
        self.side, self.lead, self.sizes = [None] * n, [np.float32(0)] * n, [0, 0]
        self.caps, self.rule = caps, rule

    def freer(self):
        free = [(self.caps[side] - self.sizes[side]) * self.caps[1 - side] for side in (0, 1)]
        return int(free[1] > free[0])

    def put(self, v, side):
        if self.side[v] is not None:
            self.sizes[self.side[v]] -= 1
        self.side[v] = side
        self.sizes[side] += 1

    def count(self, v, chunk):
        sides = [self.side[a + b - v] for a, b in chunk if a != b and v in (a, b)]
        return np.float32(sides.count(0) - sides.count(1))

    def choose(self, v, lead):
        old, wanted = self.side[v], None if lead == 0 else int(lead < 0)
        full = [self.sizes[side] >= self.caps[side] for side in (0, 1)]
        if self.rule == "faithful":
            return self.freer() if wanted is None or full[wanted] else wanted
        if wanted is None:
            wanted = self.freer() if old is None else old
        return 1 - wanted if self.rule == "frozen" and full[wanted] else wanted

    def seed(self, chunk, side_of):
        met = _met(chunk)
        for v in met:
            self.put(v, side_of[v])
        for v in met:
            self.lead[v] = self.count(v, chunk)
        self.keep_caps()

    def follow(self, chunk):
        for v in _met(chunk):
            placed, lead = self.side[v] is not None, self.count(v, chunk)
            if placed and self.rule == "frozen":
                continue
            if placed and self.rule == "faithful":
                lead = (self.lead[v] + lead) / np.float32(2)
            elif placed:
                lead = KEPT * self.lead[v] + lead
            self.put(v, self.choose(v, lead))
            self.lead[v] = lead
        self.keep_caps()

    def keep_caps(self):
        if self.rule != "refined":
            return
        for side, sign in ((0, 1), (1, -1)):
            here = [v for v, own in enumerate(self.side) if own == side]
            here.sort(key=lambda v: sign * self.lead[v])
            for v in here[: max(0, self.sizes[side] - self.caps[side])]:
                self.put(v, 1 - side)

    def place_rest(self):
        for v, side in enumerate(self.side):
            if side is None:
                self.put(v, self.freer())


def _met(chunk):
    return sorted({v for edge in chunk if edge[0] != edge[1] for v in edge})


def grem(n, edges, k, chunk, passes, rule, balance, seed):
    """Return the part of every vertex, of records that are in order already."""
    cap = math.ceil(min(balance, k) * n / k)

    def in_memory(n, edges, first, parts, rule):
        """Ask for a graph of one chunk with the caps and the seed of a sub-problem."""
        opened = fp.open_graph(np.array(edges, np.uint32).reshape(-1, 2), num_vertices=n)
        own = seed ^ splitmix64(first << 32 | parts) ^ splitmix64(parts)
        share = max(1.0, (cap - 0.5) * parts / n) if n else 1.0
        options = {"chunk": max(1, len(edges)), "balance": share, "order": "file", "seed": own}
        return fp.grem(opened, parts, faithful=rule == "faithful", **options).assignment.tolist()

    def parts_of(n, edges, first, parts):
        if parts == 1:
            return [first] * n
        if len(edges) <= chunk and rule != "faithful":
            return [first + part for part in in_memory(n, edges, first, parts, "whole")]
        shares = [(parts + 1) // 2, parts // 2]
        sides = Sides(n, [share * cap for share in shares], rule)
        chunks = [edges[start : start + chunk] for start in range(0, len(edges), chunk)]
        if chunks:
            # Algorithm 2 partitions nothing as a whole: of one chunk it shows the sides of the seed.
            seeded = in_memory(n, chunks[0], first, parts, "faithful")
            sides.seed(chunks[0], [int(part >= shares[0]) for part in seeded])
        for later in (chunks * passes)[1:]:
            sides.follow(later)
        sides.place_rest()
        found = [None] * n
        for side, share in enumerate(shares):
            ids = [v for v in range(n) if sides.side[v] == side]
            number = {v: i for i, v in enumerate(ids)}
            inner = [[number[a], number[b]] for a, b in edges if a != b and a in number and b in number]
            parts_here = parts_of(len(ids), inner, first + side * shares[0], share)
            for v, part in zip(ids, parts_here, strict=True):
                found[v] = part
        return found

    return parts_of(n, edges.tolist(), 0, k)
