"""SIGMA of vertices against the whole rule in plain Python, and what it promises."""

import heapq
import json
import math
import statistics
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from soaked import PAIRS, examples
from strategies import edge_lists

pytestmark = pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")


class Oracle:
    """The rule, each step in the most obvious way: every part is scored for every vertex, all counts are made anew."""

    def __init__(
        self, n, edges, k, *, balance=1.03, volume_balance=1.10, objective="multi", tau=0.5, gamma=2.5
    ):
        self.n, self.k = n, k
        self.objective, self.tau, self.gamma = objective, tau, gamma
        self.neighbours = [[] for _ in range(n)]
        for u, v in edges.tolist():
            if u != v:
                self.neighbours[u].append(v)
                self.neighbours[v].append(u)
        self.degree = [len(all_of) for all_of in self.neighbours]
        total = n + sum(self.degree)
        self.caps = [
            math.ceil(min(ratio, k) * items / k) for ratio, items in ((balance, n), (volume_balance, total))
        ]
        self.part = [None] * n

    # Clusters and what they prefer.

    def clusters(self):
        """Return the cluster of each vertex, numbered by their lowest vertices."""
        ends, of, gained = sum(self.degree), [None] * self.n, 0
        members = {}

        def gain(v, cluster):
            """Gain of ``v`` in a cluster, times 2 m'^2; ``v`` itself does not count."""
            if cluster is None:
                return 0
            ties = sum(of[u] == cluster for u in self.neighbours[v])
            return ends * ties - self.degree[v] * sum(self.degree[u] for u in members[cluster] - {v})

        def has_room(v, cluster):
            inside = members[cluster] | {v}
            return len(inside) <= self.caps[0] and sum(self.degree[u] + 1 for u in inside) <= self.caps[1]

        def visit(v):
            """Put ``v`` where it gains most; return whether it moved."""
            nonlocal gained
            old, staying = of[v], gain(v, of[v])
            best, home = max(staying, 0), old if staying >= 0 and old is not None else "new"
            for cluster in dict.fromkeys(of[u] for u in sorted(self.neighbours[v]) if of[u] is not None):
                if cluster != old and has_room(v, cluster) and gain(v, cluster) > best:
                    best, home = gain(v, cluster), cluster
            if home == old and old is not None:
                return False
            if old is not None:
                members[old].remove(v)
            if home == "new":
                home = max(members, default=-1) + 1
            members.setdefault(home, set()).add(v)
            of[v] = home
            gained += best - staying
            return old is not None

        for v in range(self.n):
            visit(v)
        active = {u for v in range(self.n) if visit(v) for u in self.neighbours[v]}
        for _ in range(10):
            before, moved = gained, [v for v in sorted(active) if visit(v)]
            active = {u for v in moved for u in self.neighbours[v]}
            if 20 * (gained - before) < before or not active:
                break
        numbers = {cluster: number for number, cluster in enumerate(dict.fromkeys(of))}
        return [numbers[cluster] for cluster in of]

    def preferred(self):
        """Return the part of each vertex's cluster."""
        cluster = self.clusters()
        sizes = np.bincount(cluster, minlength=1).tolist() if cluster else []
        loads, part_of = [0] * self.k, {}
        for index in sorted(range(len(sizes)), key=lambda index: (-sizes[index], index)):
            part_of[index] = loads.index(min(loads))
            loads[part_of[index]] += sizes[index]
        return [part_of[index] for index in cluster]

    # Loads and scores.

    def load(self, part):
        members = [v for v in range(self.n) if self.part[v] == part]
        return [len(members), sum(self.degree[v] + 1 for v in members)]

    def relative(self, load):
        return max(load[0] / self.caps[0], load[1] / self.caps[1])

    def after(self, v, part):
        load = self.load(part)
        return [load[0] + 1, load[1] + self.degree[v] + 1]

    def fits(self, v, part, scale=1.0):
        return all(load <= cap * scale for load, cap in zip(self.after(v, part), self.caps, strict=True))

    def inside(self, v, part):
        return sum(self.part[u] == part for u in self.neighbours[v])

    def is_present(self, v, part):
        """Say whether ``v`` or a neighbour was a member when the batch began."""
        return any(self.before[u] == part for u in [v, *self.neighbours[v]])

    def score(self, v, part):
        score = self.inside(v, part) / self.degree[v] - self.relative(self.load(part)) ** (self.gamma - 1.1)
        if self.objective == "cut":
            return score
        new = sum(not self.is_present(u, part) for u in self.neighbours[v])
        homes = {self.before[u] for u in self.neighbours[v]} - {None, part}
        away = sum(not self.is_present(v, home) for home in homes)
        return score - self.tau * (new + away) / (self.degree[v] + self.k)

    def decide(self, v, scale):
        feasible = [part for part in range(self.k) if self.fits(v, part, scale)]
        if feasible:
            return max(feasible, key=lambda part: self.score(v, part))
        return min(range(self.k), key=lambda part: self.relative(self.after(v, part)))

    # The steps.

    def run(self, batch=1, strict=True):
        """Return the part of each vertex, and the cap on volume that holds."""
        preferred = self.preferred()
        linked = [v for v in range(self.n) if self.degree[v]]
        for v in linked:
            others = {self.part[u] for u in self.neighbours[v]} - {None, preferred[v]}
            if not others and self.fits(v, preferred[v]):
                self.part[v] = preferred[v]
        deferred = [v for v in linked if self.part[v] is None]
        least = max(0.9, *(self.relative(self.load(part)) for part in range(self.k))) if self.n else 0.9
        scales = [least + (1 - least) * math.sqrt(t / len(deferred)) for t in range(len(deferred))]
        for start in range(0, len(deferred), batch):
            members, self.before = deferred[start : start + batch], list(self.part)
            frozen = [self.decide(v, scales[start]) for v in members]
            for v, part, scale in zip(members, frozen, scales[start:], strict=False):
                self.part[v] = part if self.fits(v, part, scale) else self.decide(v, scale)
        for v in range(self.n):
            if not self.degree[v]:
                feasible = [part for part in range(self.k) if self.fits(v, part)]
                self.part[v] = min(feasible or range(self.k), key=lambda part: self.load(part)[0])
        return self.part, self.repair() if strict else None

    def repair(self):
        nominal = self.caps[1]
        largest = max(self.degree, default=-1) + 1
        bound = -(-(self.n + sum(self.degree)) // self.k) + largest
        if largest > nominal:
            self.caps[1] = bound
        while self.round_of_moves():
            pass
        for v in sorted(range(self.n), key=lambda v: (self.degree[v], v)):
            if self.load(self.part[v])[0] > self.caps[0]:
                room = [part for part in range(self.k) if self.load(part)[0] < self.caps[0]]
                self.part[v] = min(room, key=lambda part: self.load(part)[1])
        for part in range(self.k):
            while self.load(part)[1] > self.caps[1] and self.exchange(part):
                pass
        if max(self.load(part)[1] for part in range(self.k)) > max(nominal, bound):
            for turn, v in enumerate(sorted(range(self.n), key=lambda v: (-self.degree[v], v))):
                self.part[v] = turn % self.k
        return max(nominal, *(self.load(part)[1] for part in range(self.k)), 0)

    def is_over(self, part):
        return any(load > cap for load, cap in zip(self.load(part), self.caps, strict=True))

    def best_move(self, v):
        """Return the loss and the part of the best move, or nothing."""
        feasible = [part for part in range(self.k) if self.fits(v, part)]
        if not feasible:
            return None
        best = min(feasible, key=lambda part: (-self.inside(v, part), self.relative(self.load(part))))
        return self.inside(v, self.part[v]) - self.inside(v, best), best

    def round_of_moves(self):
        waiting, moved = [], False
        for v in range(self.n):
            if self.is_over(self.part[v]) and (move := self.best_move(v)):
                waiting.append((move[0], v))
        heapq.heapify(waiting)
        while waiting:
            loss, v = heapq.heappop(waiting)
            if not self.is_over(self.part[v]) or not (move := self.best_move(v)):
                continue
            if move[0] > loss:
                heapq.heappush(waiting, (move[0], v))
            else:
                self.part[v], moved = move[1], True
        return moved

    def exchange(self, part):
        """Exchange one pair; return whether there was one."""
        excess = self.load(part)[1] - self.caps[1]
        rooms = [self.caps[1] - self.load(other)[1] for other in range(self.k)]
        ordered = sorted(range(self.n), key=lambda v: (self.degree[v], v))
        for other in sorted(range(self.k), key=lambda other: -max(rooms[other], 0)):
            pairs = [
                (self.degree[v] - self.degree[w], v, w)
                for v in ordered if self.part[v] == part
                for w in ordered if self.part[w] == other
                if 0 < self.degree[v] - self.degree[w] <= rooms[other]
            ]  # fmt: skip
            if not pairs:
                continue
            enough = [pair[0] for pair in pairs if pair[0] >= excess]
            carried = min(enough) if enough else max(pair[0] for pair in pairs)
            v = next(v for c, v, _ in pairs if c == carried)
            partners = [w for c, mine, w in pairs if (c, mine) == (carried, v)]
            w = partners[-1] if enough else partners[0]
            self.part[v], self.part[w] = other, part
            return True
        return False


OPTIONS = st.fixed_dictionaries(
    {
        "k": st.integers(1, 9),
        "balance": st.sampled_from([1.0, 1.03, 1.3, 1e308]),
        "volume_balance": st.sampled_from([1.0, 1.1, 1.5, 1e308]),
        "objective": st.sampled_from(["multi", "cut"]),
        "tau": st.sampled_from([0.0, 0.5, 2.0]),
        "gamma": st.sampled_from([1.2, 2.5, 4]),
    }
)


@examples(60)
@given(edge_lists(20, 50), OPTIONS, st.sampled_from([None, 1, 3]), st.booleans())
def test_the_whole_rule_equals_the_oracle(graph, options, batch, strict):
    n, edges = graph
    oracle = Oracle(n, edges, **options)
    expected, cap = oracle.run(batch or 1, strict)
    partition = fp.sigma(fp.open_graph(edges, num_vertices=n), batch=batch, strict=strict, **options)
    assert partition.assignment.tolist() == expected
    assert partition.volume_cap == cap
    volumes = [oracle.load(i)[1] for i in range(partition.k)]
    assert partition.volume_loads is None if cap is None else partition.volume_loads.tolist() == volumes


def check(edges, n, part, balance=1.03, volume_balance=1.10):
    """Assert what holds for every result; return the nominal cap on volume."""
    degrees = fp.open_graph(edges, num_vertices=n).degrees().astype(np.int64)
    k, volume = part.k, int(degrees.sum()) + n
    assert len(part) == n
    assert part.loads.tolist() == np.bincount(part.assignment, minlength=k).tolist()
    volumes = np.bincount(part.assignment, weights=degrees + 1, minlength=k).astype(int)
    assert part.volume_loads.tolist() == volumes.tolist()
    assert part.cap == math.ceil(min(balance, k) * n / k)
    assert part.loads.max() <= part.cap
    assert part.volume_loads.max() <= part.volume_cap
    nominal = math.ceil(min(volume_balance, k) * volume / k)
    assert nominal <= part.volume_cap <= max(nominal, -(-volume // k) + int(degrees.max(initial=-1)) + 1)
    return nominal


def star(n):
    return np.array([[0, v] for v in range(1, n)], np.uint32)


def clique(n):
    return np.array([[u, v] for u in range(n) for v in range(u)], np.uint32)


@pytest.mark.parametrize("k", [1, 2, 4, 8, 100])
@pytest.mark.parametrize("objective", ["multi", "cut"])
@pytest.mark.parametrize(
    ("n", "edges"),
    [
        (0, np.zeros((0, 2), np.uint32)),
        (40, np.zeros((0, 2), np.uint32)),
        (200, star(200)),
        (30, clique(30)),
        (500, clique(30)),
        (60, np.array([[u, v] for u in range(20) for v in range(20, 60)], np.uint32)),
        (400, np.array([edge for v in range(1, 399) for edge in ((0, v), (v, v + 1))], np.uint32)),
        (1000, np.arange(1000, dtype=np.uint32).reshape(-1, 2)),
    ],
    ids=["empty", "isolated", "star", "clique", "clique and isolated", "bipartite", "hub", "pairs"],
)
def test_caps_of_shapes(n, edges, k, objective):
    opened = fp.open_graph(edges, num_vertices=n)
    parts = [fp.sigma(opened, k, objective=objective, threads=threads) for threads in (1, 3)]
    nominal = check(edges, n, parts[0])
    np.testing.assert_array_equal(parts[0].assignment, parts[1].assignment)
    # All but star and hub leave room for an even partition.
    if n in (500, 1000) and k <= 8:
        assert parts[0].volume_cap == nominal


@given(edge_lists(40, 150), OPTIONS, st.sampled_from([None, 1, 7]))
def test_caps_and_threads(graph, options, batch):
    n, edges = graph
    opened = fp.open_graph(edges, num_vertices=n)
    parts = [fp.sigma(opened, batch=batch, threads=threads, **options) for threads in (1, 2, 5)]
    check(edges, n, parts[0], options["balance"], options["volume_balance"])
    for part in parts[1:]:
        np.testing.assert_array_equal(part.assignment, parts[0].assignment)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """An R-MAT of 2**16 vertices and more than 2**18 records, from where on the default rule works in batches."""
    path = tmp_path_factory.mktemp("large") / "g.bin"
    return fp.generate.rmat(path, n=1 << 16, m=500_000, seed=7)


@pytest.mark.parametrize("objective", ["multi", "cut"])
def test_threads_and_containers_of_a_large_graph(large, objective):
    expected = fp.sigma(large, 8, objective=objective, threads=1)
    array = np.fromfile(large.path, np.uint32).reshape(-1, 2)
    others = [
        fp.open_graph(large.path, io="read"),
        fp.open_graph(array.astype(np.int64), num_vertices=1 << 16),
        fp.open_graph(array[np.random.default_rng(0).permutation(len(array))], num_vertices=1 << 16),
    ]
    for edges in others:
        for threads in (2, 3):
            partition = fp.sigma(edges, 8, objective=objective, threads=threads)
            np.testing.assert_array_equal(partition.assignment, expected.assignment)
    assert (fp.sigma(large, 8, objective=objective, batch=1).assignment != expected.assignment).any()


def test_a_symmetric_file_is_the_same_graph():
    edges = np.random.default_rng(0).integers(0, 60, (300, 2), dtype=np.uint32)
    edges = edges[edges[:, 0] != edges[:, 1]]
    both = np.concatenate([edges, edges[:, ::-1]])
    once = fp.sigma(fp.open_graph(edges, num_vertices=60), 4)
    twice = fp.sigma(fp.open_graph(both, num_vertices=60, directedness="symmetric"), 4)
    assert once.assignment.tolist() == twice.assignment.tolist()
    assert once.volume_cap == twice.volume_cap


# What users see.


def test_a_cap_that_cannot_be_is_raised_with_a_warning_or_refused():
    with pytest.warns(fp.errors.CapacityWarning, match=r"volume_balance: .* within 165 .* raised to"):
        partition = fp.sigma(star(200), 4)
    assert partition.volume_cap >= 200
    with pytest.raises(fp.errors.CapacityError, match="volume_balance"):
        fp.sigma(star(200), 4, on_infeasible="error")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fp.sigma(star(200), 1, on_infeasible="error").volume_cap == 598


def test_measures_and_files_have_both_caps(tmp_path):
    edges = fp.open_graph(clique(30), num_vertices=30)
    partition = fp.sigma(edges, 3)
    evaluation = fp.evaluate(edges, partition)
    assert evaluation.parts["volume_load"].to_list() == partition.volume_loads.tolist()
    assert evaluation.parts["volume_cap"].to_list() == [partition.volume_cap] * 3
    assert evaluation.summary["volume_balance"][0] == partition.volume_loads.max() / (900 / 3)
    partition.save(tmp_path / "out", graph=edges)
    loaded = fp.open_partition(tmp_path / "out")
    assert loaded.volume_cap == partition.volume_cap
    assert loaded.volume_loads.tolist() == partition.volume_loads.tolist()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [bound["of"] for bound in manifest["caps"]] == ["vertices", "volume"]
    manifest["caps"][1]["loads"] = [1, 2]
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(
        fp.errors.GraphFormatError, match="caps: volume: loads: expected a list of 3 integers"
    ):
        fp.open_partition(tmp_path / "out")


def test_without_repair_there_are_no_caps():
    edges = clique(30)
    partition = fp.sigma(edges, 3, strict=False)
    assert (partition.cap, partition.volume_cap, partition.volume_loads) == (None, None, None)
    assert "volume_load" not in fp.evaluate(edges, partition).parts.columns


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"of": "both"}, fp.errors.ParameterError, "of: unknown value 'both'"),
        ({"objective": "speed"}, fp.errors.ParameterError, "objective: unknown value"),
        ({"balance": 0.9}, fp.errors.ParameterError, "balance"),
        ({"volume_balance": math.inf}, fp.errors.ParameterError, "volume_balance"),
        ({"tau": -1}, fp.errors.ParameterError, "tau: -1. Use a number of at least 0"),
        ({"tau": "1"}, TypeError, "tau: expected a number"),
        ({"gamma": 1.0}, fp.errors.ParameterError, "gamma: 1. Use more than 1.1"),
        ({"batch": 0}, fp.errors.ParameterError, "batch"),
        ({"strict": 1}, TypeError, "strict"),
        ({"on_infeasible": "ignore"}, fp.errors.ParameterError, "on_infeasible"),
        ({"out": "x.npy"}, fp.errors.ParameterError, 'out: needs of="edges"'),
        ({"of": "edges", "tau": 1.0}, fp.errors.ParameterError, 'tau: it belongs to of="vertices"'),
        ({"tmp_dir": "/nowhere/at/all"}, fp.errors.ParameterError, "tmp_dir"),
    ],
    ids=str,
)
def test_refusals(options, error, text):
    with pytest.raises(error, match=text):
        fp.sigma(clique(5), 2, **options)


def test_the_command_line(tmp_path, capsys):
    clique(30).tofile(tmp_path / "g.bin")
    arguments = ["--algorithm", "sigma", "--objective", "cut", "--volume-balance", "1.2", "--json", "-q"]
    assert main(["partition", str(tmp_path / "g.bin"), "-k", "3", *arguments]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["summary"]["algorithm"] == "sigma"
    assert {row["volume_cap"] for row in content["parts"]} == {360}


# Quality.

PARTS = (4, 8, 32)


def cut(edges, part):
    return fp.evaluate(edges, part).summary["cut_ratio"][0]


@pytest.mark.parametrize(("k", "most"), [(4, 0.45), (8, 0.53), (32, 0.67)])
def test_amazon_computers(datasets, tmp_path, k, most):
    edges = fp.convert(datasets / "amazon-computers.txt.gz", tmp_path / "g.bin")
    partition = fp.sigma(edges, k, on_infeasible="error")
    assert cut(edges, partition) <= most
    assert partition.loads.max() <= math.ceil(1.03 * 13752 / k)
    assert partition.volume_loads.max() <= math.ceil(1.10 * (2 * 245861 + 13752) / k)


@PAIRS
@pytest.mark.parametrize("objective", ["multi", "cut"])
def test_both_caps_are_kept_on_all_real_graphs(real_graphs, objective, pairs):
    for (name, edges), k in pairs(real_graphs.items(), PARTS):
        partition = fp.sigma(edges, k, objective=objective, on_infeasible="error")
        assert check(edges, edges.num_vertices, partition) == partition.volume_cap, f"{name}, k={k}"
        random = np.random.default_rng(0).permutation(len(partition)) % k
        assert cut(edges, partition) < cut(edges, fp.VertexPartition(random, k)), f"{name}, k={k}"


@PAIRS
@pytest.mark.parametrize("objective", ["multi", "cut"])
def test_parallel_rule_is_as_good_as_the_sequential_one(real_graphs, objective, pairs):
    ratios = {}
    # Below, the default is the sequential rule.
    large = [
        edges for edges in real_graphs.values() if edges.num_edges >= 2**18 and edges.num_vertices >= 2**16
    ]
    for edges, k in pairs(large, PARTS):
        parts = [fp.sigma(edges, k, objective=objective, batch=batch) for batch in (None, 1)]
        default, sequential = (cut(edges, part) for part in parts)
        ratios[edges.path, k] = default / sequential
    assert len(ratios) >= 2
    assert statistics.median(ratios.values()) <= 1.02, ratios
