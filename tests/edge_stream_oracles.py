"""Edge streaming by hand: every rule scored over all parts, with sets."""

import math


class Oracle:
    """Places records one by one; ``rule`` is "hdrf", "greedy" or "sigma"."""

    def __init__(self, n, records, k, rule, weight=1.0):
        self.rule, self.weight, self.k = rule, weight, k
        self.records = [(int(u), int(v)) for u, v in records]
        self.degree = [sum((x == u) != (x == v) for u, v in self.records) for x in range(n)]
        self.loads = [0] * k
        self.holds = [set() for _ in range(k)]
        self.parts = [None] * len(self.records)

    def put(self, index, part):
        self.parts[index] = part
        self.loads[part] += 1
        self.holds[part] |= set(self.records[index])

    def worth(self, u, v):
        du, dv = self.degree[u], self.degree[v]
        if self.rule != "greedy":
            return 2 - du / (du + dv), 2 - dv / (du + dv)
        self.degree[u] -= 1
        self.degree[v] -= 1
        return (2.0, 1.0) if du >= dv else (1.0, 2.0)

    def balance(self, part):
        most, least = max(self.loads), min(self.loads)
        if self.rule != "sigma":
            return (most - self.loads[part]) * (self.weight / (1 + most - least))
        replicas = [len(held) for held in self.holds]
        terms = [
            (max(loads) - loads[part]) * (self.weight / 2 / max(loads)) if max(loads) else 0.0
            for loads in (self.loads, replicas)
        ]
        return terms[0] + terms[1]

    def best(self, index, limit):
        u, v = self.records[index]
        gain_u, gain_v = self.worth(u, v)
        open_parts = [part for part in range(self.k) if self.loads[part] < limit]

        def score(part):
            held = self.holds[part]
            return (gain_u if u in held else 0) + (gain_v if v in held else 0) + self.balance(part)

        if open_parts:
            return max(open_parts, key=score)  # the first of equals
        return self.loads.index(min(self.loads))

    def place_loops(self, cap):
        for index, (u, v) in enumerate(self.records):
            if u == v:
                held = [p for p in range(self.k) if u in self.holds[p] and self.loads[p] < cap]
                self.put(index, min(held or range(self.k), key=lambda p: self.loads[p]))
        return self.parts


def stream(n, records, k, rule, balance, weight=1.0):
    """Return the parts that HDRF or the greedy rule gives."""
    oracle = Oracle(n, records, k, rule, weight)
    cap = math.ceil(min(balance, k) * len(records) / k)
    for index, (u, v) in enumerate(oracle.records):
        if u != v:
            oracle.put(index, oracle.best(index, cap))
    return oracle.place_loops(cap)
