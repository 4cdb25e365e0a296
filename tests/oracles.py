"""The measures and the partition directory once more: naive, in plain Python, straight from their definitions.

A graph is ``n`` and a list of records ``(u, v)``, a partition a list of parts (one per vertex, or one per record).
"""

from collections import Counter


def _without_loops(edges):
    return [(u, v) for u, v in edges if u != v]


def degrees(n, edges):
    """Return the number of non-loop records at each vertex."""
    ends = Counter(end for record in _without_loops(edges) for end in record)
    return [ends[v] for v in range(n)]


def _members(parts, k):
    return [{v for v, part in enumerate(parts) if part == i} for i in range(k)]


def loads(parts, k):
    """Return the number of items of each part."""
    return [len(members) for members in _members(parts, k)]


def _balance(counts, total):
    return max(counts) / (total / len(counts)) if total else 1.0


def cut_ratio(edges, parts):
    """Return the share of the non-loop records whose ends lie in two parts."""
    records = _without_loops(edges)
    return sum(parts[u] != parts[v] for u, v in records) / len(records) if records else 0.0


def vertex_balance(n, parts, k):
    """Return the largest number of vertices of a part, relative to the mean."""
    return _balance(loads(parts, k), n)


def volumes(n, edges, parts, k):
    """Return the sum of the degrees of each part."""
    degree = degrees(n, edges)
    return [sum(degree[v] for v in members) for members in _members(parts, k)]


def edge_balance(n, edges, parts, k):
    """Return the largest volume of a part, relative to the mean."""
    return _balance(volumes(n, edges, parts, k), 2 * len(_without_loops(edges)))


def halos(edges, parts, k):
    """Return, for each part, the set of vertices outside it that have a neighbour in it."""
    found = [set() for _ in range(k)]
    for u, v in edges:
        if parts[u] != parts[v]:
            found[parts[u]].add(v)
            found[parts[v]].add(u)
    return found


def halo_rf(n, edges, parts, k):
    """Return the size of all parts with their neighbours, relative to the graph's."""
    whole = [members | halo for members, halo in zip(_members(parts, k), halos(edges, parts, k), strict=True)]
    return sum(map(len, whole)) / n if n else 1.0


def components(edges, parts, k):
    """Return the number of connected components of each part, found one vertex after the other."""
    neighbours = {v: [] for v in range(len(parts))}
    for u, v in edges:
        if parts[u] == parts[v]:
            neighbours[u].append(v)
            neighbours[v].append(u)
    seen, counts = set(), [0] * k
    for v in neighbours:
        counts[parts[v]] += v not in seen
        waiting = [] if v in seen else [v]
        while waiting:
            u = waiting.pop()
            if u not in seen:
                seen.add(u)
                waiting += neighbours[u]
    return counts


def cut_matrix(edges, parts, k):
    """Return the number of records between each two parts."""
    matrix = [[0] * k for _ in range(k)]
    for u, v in _without_loops(edges):
        p, q = parts[u], parts[v]
        matrix[p][q] += 1
        if p != q:
            matrix[q][p] += 1
    return matrix


def replicas(edges, parts, k):
    """Return, for each part of the records, the set of vertices that its records touch."""
    return [
        {end for record, part in zip(edges, parts, strict=True) if part == i for end in record}
        for i in range(k)
    ]


def replication_factor(edges, parts, k):
    """Return the number of copies of a touched vertex, on average."""
    touched = {end for record in edges for end in record}
    return sum(map(len, replicas(edges, parts, k))) / len(touched) if touched else 1.0


def record_balance(parts, k):
    """Return the largest number of records of a part, relative to the mean."""
    return _balance(loads(parts, k), len(parts))


def replica_balance(edges, parts, k):
    """Return the largest number of vertices that a part's records touch, relative to the mean."""
    sizes = [len(touched) for touched in replicas(edges, parts, k)]
    return _balance(sizes, sum(sizes))


def split_balance(ids, parts, k):
    """Return the largest share of a split in one part, relative to 1/k: train, validation and test balance."""
    counts = Counter(parts[v] for v in ids)
    return max(counts.values()) / len(ids) / (1 / k) if ids else 1.0


def _distribution(labels):
    return {label: labels.count(label) / len(labels) for label in labels}


def label_skews(labels, parts, k):
    """Return the total-variation distance of each part's labels to the graph's; None for a part without labels."""
    overall = _distribution([label for label in labels if label >= 0])
    skews = []
    for members in _members(parts, k):
        mine = _distribution([labels[v] for v in sorted(members) if labels[v] >= 0])
        distance = sum(abs(mine.get(label, 0) - share) for label, share in overall.items()) / 2
        skews.append(distance if mine else None)
    return skews


def directed_edges(edges, kind):
    """Return ``{id: (source, destination)}`` of the directed edges that training sees."""
    found = dict(enumerate(edges))
    if kind == "undirected":
        found |= {len(edges) + r: (v, u) for r, (u, v) in enumerate(edges) if u != v}
    return found


def in_edges(n, edges, kind):
    """Return, for each vertex, its in-edges as (source, id), in the order of the records."""
    rows = [[] for _ in range(n)]
    directed = directed_edges(edges, kind)
    for edge in sorted(directed, key=lambda edge: edge % len(edges)):
        source, destination = directed[edge]
        rows[destination].append((source, edge))
    return rows


def rings(n, edges, kind, inner, hops):
    """Return the vertices met first after 1, 2, ... steps against the direction of the edges."""
    rows = in_edges(n, edges, kind)
    seen, ring, found = set(inner), set(inner), []
    for _ in range(hops):
        ring = {source for v in ring for source, _ in rows[v]} - seen
        seen |= ring
        found.append(sorted(ring))
    return found


def roots(n, edges, parts, k):
    """Return the part of each vertex's root: few copies choose first, vertices without a record last."""
    copies = [{part for record, part in zip(edges, parts, strict=True) if v in record} for v in range(n)]
    load, root = [0] * k, [0] * n
    for v in sorted(range(n), key=lambda v: (not copies[v], len(copies[v]), v)):
        root[v] = min(copies[v] or range(k), key=lambda part: (load[part], part))
        load[root[v]] += 1
    return root
