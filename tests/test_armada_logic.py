"""The pieces of armada: progress of slices, indexes of caches, groups, and messages."""

import json
import math
import socket
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp

torch = pytest.importorskip("torch")

from fastpart.runtime.reporting import blames_peers  # noqa: E402
from fastpart.train.methods.armada.cache import NONE, Cache, LruIndex, StaticIndex, cache_index  # noqa: E402
from fastpart.train.methods.armada.groups import Grouping, Sample  # noqa: E402
from fastpart.train.methods.armada.messages import (  # noqa: E402
    _MOST_TEXT,
    _VERSION,
    ConnectionClosedError,
    ConnectionSilentError,
    Link,
    MessageError,
    framed,
    write,
)
from fastpart.train.methods.armada.schedule import Coordinator, Progress  # noqa: E402


class Workers:
    """Batch workers whose messages arrive in any order, and that die at any moment, also with messages under way."""

    def __init__(self, count, slices, steps, ahead):
        self.coordinator = Coordinator(range(count), ahead)
        self.progress = {worker: Progress() for worker in range(count)}
        self.under_way = {worker: [] for worker in range(count)}
        self.taken, self.steps, self.ahead = [], steps, ahead
        self.used = self.complete = 0
        orders = self.coordinator.begin(
            {seed_slice: seed_slice % count for seed_slice in range(slices)}, steps
        )
        for worker, its_slices in orders.items():
            self.progress[worker].begin(steps)
            self.progress[worker].add(its_slices)
        self.tell_limit()

    def tell_limit(self):
        for progress in self.progress.values():
            progress.limit = self.coordinator.limit

    def make(self, worker):
        if (work := self.progress[worker].pop()) is not None:
            self.under_way[worker].append(work)
        return work is not None

    def arrive(self, worker):
        if not self.under_way[worker]:
            return False
        step, slices = self.under_way[worker].pop(0)
        complete = self.coordinator.take(worker, step, slices)
        self.taken += [(step, seed_slice) for seed_slice in slices]
        assert list(complete) == list(range(self.complete, complete.stop))
        self.complete = complete.stop
        return True

    def use(self):
        if self.used == self.complete:
            return False
        self.coordinator.use(self.used)
        self.used += 1
        self.tell_limit()
        return True

    def die(self, worker):
        for other, slices in self.coordinator.lose(worker).items():
            self.progress[other].add(slices)
        del self.progress[worker], self.under_way[worker]


@settings(max_examples=200)
@given(st.data(), st.integers(1, 4), st.integers(1, 6), st.integers(0, 6), st.integers(1, 3))
def test_every_step_of_every_seed_slice_is_taken_once(data, count, slices, steps, ahead):
    workers = Workers(count, slices, steps, ahead)
    while True:
        alive = sorted(workers.progress)
        moves = [(call, worker) for worker in alive for call in (workers.make, workers.arrive)]
        done = next((move for move in data.draw(st.permutations(moves)) if move[0](move[1])), None)
        used = data.draw(st.booleans()) and workers.use()
        assert workers.complete <= workers.used + ahead  # no unbounded queue
        if len(alive) > 1 and data.draw(st.integers(0, 5)) == 0:
            workers.die(data.draw(st.sampled_from(alive)))
            continue
        if not done and not used and not workers.use():
            break
    assert sorted(workers.taken) == [
        (step, seed_slice) for step in range(steps) for seed_slice in range(slices)
    ]
    assert workers.used == steps
    assert workers.coordinator.over


def test_what_comes_out_of_order_is_refused():
    coordinator = Coordinator(range(2), 2)
    coordinator.begin({0: 0, 1: 0, 2: 1}, 3)
    for worker, step, slices in [
        (1, 0, [0]),
        (0, 1, [0]),
        (0, 0, [0, 0]),
        (0, 0, []),
        (0, 0, [9]),
        (0, 0, [0, 2]),
    ]:
        with pytest.raises(MessageError, match="out of order"):
            coordinator.take(worker, step, slices)
    for step in range(2):
        coordinator.take(1, step, [2])
    with pytest.raises(MessageError):  # nothing was used
        coordinator.take(1, 2, [2])


ROWS = st.lists(st.sets(st.integers(0, 30), max_size=20), max_size=12)


@given(ROWS, st.integers(0, 12), st.sampled_from(["static", "lru"]), st.integers(1, 3), st.data())
def test_an_index_knows_the_contents_of_the_cache(sequence, capacity, policy, workers, data):
    """Whatever the rows, all arrive, and a batch worker never believes what is not there."""
    features = np.random.default_rng(0).standard_normal((31, 2)).astype(np.float32)
    chosen = np.sort(np.random.default_rng(1).permutation(31)[:capacity]).astype(np.uint32)
    indexes = [cache_index(policy, capacity, chosen, worker, workers, 31) for worker in range(workers)]
    cache = Cache(np.full((capacity, 2), np.nan, np.float32))
    for wanted in sequence:
        rows = np.array(sorted(wanted), np.uint32)
        placement = indexes[data.draw(st.integers(0, workers - 1))].place(rows)
        ordered = np.concatenate([rows[~placement.cached], rows[placement.cached]])
        sent = int((~placement.cached).sum())
        x = np.full((len(rows), 2), np.nan, np.float32)
        x[:sent] = features[ordered[:sent]]
        cache.fill(x, ordered, sent, placement.slots, placement.kept, placement.into)
        assert np.array_equal(x, features[ordered])
        assert (cache._rows != NONE).sum() <= capacity


@given(ROWS, st.integers(1, 12))
def test_lru_holds_what_was_used_last(sequence, capacity):
    index, used = LruIndex(5, capacity, 31), {}
    for time, wanted in enumerate(sequence):
        rows = np.array(sorted(wanted), np.uint32)
        placement = index.place(rows)
        assert placement.cached.tolist() == [row in used for row in rows.tolist()]
        before, used = used, {}
        for row in index._row_in[index._row_in != NONE].tolist():
            used[row] = time if row in wanted else before[row]
        missing = [row for row in rows.tolist() if row not in before]
        free = capacity - sum(row in wanted for row in before)
        assert [row for row in missing if row in used] == missing[:free]
        gone = [before[row] for row in before if row not in used]
        assert len(gone) == max(0, len(before) + min(len(missing), free) - capacity)
        left = [before[row] for row in before if row in used and row not in wanted]
        assert max(gone, default=-1) <= min(left, default=time)


def test_a_fixed_row_is_sent_once():
    index = StaticIndex(np.array([2, 5, 7], np.uint32))
    first, second = (index.place(np.array([1, 2, 7, 9], np.uint32)) for _ in range(2))
    assert first.cached.tolist() == [False] * 4
    assert (first.kept.tolist(), first.into.tolist()) == ([1, 2], [0, 2])
    assert second.cached.tolist() == [False, True, True, False]
    assert (second.slots.tolist(), second.kept.tolist()) == ([0, 2], [])


def test_a_cache_refuses_what_it_does_not_hold():
    cache, x = Cache(np.zeros((3, 1))), np.zeros((2, 1))
    rows, none = np.array([4, 6], np.uint32), np.empty(0, np.int32)
    cache.fill(x, rows, 2, none, np.array([0], np.int32), np.array([1], np.int32))
    cache.fill(x, rows[::-1].copy(), 1, np.array([1], np.int32), none, none)
    for slots, kept, into in [
        ([0], [], []),
        ([3], [], []),
        ([-1], [], []),
        ([1], [1], [0]),
        ([1], [0], [3]),
        ([], [], []),
    ]:
        slots, kept, into = (np.array(each, np.int32) for each in (slots, kept, into))
        with pytest.raises(MessageError):
            cache.fill(x, rows[::-1].copy(), 1, slots, kept, into)
    with pytest.raises(MessageError, match="other rows"):
        cache.fill(x, rows, 1, np.array([1], np.int32), none, none)


def sampled(rng, seeds):
    """Return a sample of two hops over 40 vertices."""
    rows = rng.integers(0, 40, seeds + 30).astype(np.uint32)
    indptr = np.linspace(0, 25, seeds + 1).astype(np.int32)
    indices = rng.integers(0, len(rows), 25).astype(np.int32)
    counts = {"levels": [[seeds, 30]], "edges": [[25]]}
    return Sample(rows=[rows], indptr=[indptr], indices=[indices], edge_features=[None], **counts)


@pytest.mark.parametrize("batches", [1, 3])
def test_a_group_has_every_row_once(batches):
    rng, row_bytes = np.random.default_rng(0), 12
    samples = [sampled(rng, seeds) for seeds in (5, 1, 9)[:batches]]
    grouping = Grouping([40], [row_bytes], [StaticIndex(np.arange(10, dtype=np.uint32))])
    for turn in range(2):
        group = grouping.group(samples, range(batches))
        rows = group.of_types[0][0]
        distinct = np.unique(np.concatenate([sample.rows[0] for sample in samples]))
        assert sorted(rows) == distinct.tolist()
        assert group.sent[0].tolist() == [row for row in distinct if turn == 0 or row >= 10]
        for number, sample in enumerate(samples):
            places, indptr, indices = group.of_batches[number]
            assert np.array_equal(rows[places], sample.rows[0])
            assert np.array_equal(indptr, sample.indptr[0])
            assert np.array_equal(indices, sample.indices[0])
        least = sum(
            (np.unique(each.rows[0]) >= 10 * turn).sum() * row_bytes + 4 * len(each.rows[0])
            for each in samples
        )
        assert least < group.content["ungrouped"] < least + 1000 * batches
    other = sampled(rng, 2)
    assert sorted(grouping.group([other], [0]).of_types[0][0]) == np.unique(other.rows[0]).tolist()


# Messages.


def pair():
    return [Link(line) for line in socket.socketpair()]


ARRAYS = st.lists(
    st.tuples(
        st.sampled_from(["<f4", "<f2", "<u4", "|u1", "|b1", "<i8"]),
        st.lists(st.integers(0, 4), min_size=1, max_size=3),
    ),
    max_size=4,
)


@given(ARRAYS, st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3))
def test_messages_arrive_as_they_were_sent(described, content):
    content = {**content, "kind": "batch"}
    content.pop("arrays", None)
    arrays = [np.arange(math.prod(shape)).reshape(shape).astype(dtype) for dtype, shape in described]
    one, other = pair()
    size = one.send(content, arrays)
    message = other.receive(1 << 20)
    received = [np.empty(shape, dtype) for dtype, shape in message.specs]
    other.fill(received)
    assert (message.content, message.num_bytes, message.kind) == (content, size, "batch")
    for sent, found in zip(arrays, received, strict=True):
        assert np.array_equal(sent, found)
        assert (sent.dtype, sent.shape) == (found.dtype, found.shape)
    one.close()
    other.close()


def test_the_end_of_a_message_waits_for_nothing():
    """The kernel holds back what is sent as a beginning, also if nothing is sent behind it."""
    sent = []

    class Recorded(socket.socket):
        def sendall(self, view, flags=0):
            sent.append((bytes(view), flags))

    with Recorded() as line:
        write(line, [b"head", memoryview(b""), b"body", memoryview(b"")])
    assert sent == [(b"head", socket.MSG_MORE), (b"body", 0)]


def bytes_of(content, arrays):
    return framed(content, arrays) + b"".join(array.tobytes() for array in arrays)


def received(data, most=1 << 20):
    """Return what a receiver makes of some bytes, after which the connection ends."""
    one, other = socket.socketpair()
    link = Link(other)
    link.limit(5, 5)
    try:
        one.sendall(data)
        one.close()
        message = link.receive(most)
        link.fill([np.empty(shape, dtype) for dtype, shape in message.specs])
    finally:
        one.close()
        link.close()


WHOLE = bytes_of({"kind": "batch"}, [np.arange(20, dtype=np.float32)])


def test_half_a_message_is_the_end():
    for length in range(len(WHOLE)):
        with pytest.raises(ConnectionClosedError):
            received(WHOLE[:length])


def header(text, body, version=_VERSION):
    return struct.pack("<4sIQ", version, text, body)


def forged(text, body=b""):
    """Return a message of anything, with right lengths."""
    return header(len(text), len(body)) + text + body


@pytest.mark.parametrize(
    "arrays",
    [
        None, 5, [5], [["O", [1]]], [["V8", [1]]], [["i4,O", [1]]], [["M8[s]", [1]]], [["nonsense", [1]]],
        [["<f4", [-1]]], [["<f4", [2]]], [["<f4", [2**62, 2**62]]], [["<f4", [1.0]]], [["<f4", "a"]], [["<f4", [True]]],
    ],
)  # fmt: skip
def test_forged_arrays_are_refused(arrays):
    with pytest.raises(MessageError):
        received(forged(json.dumps({"kind": "batch", "arrays": arrays}).encode(), bytes(4)))


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"nothing", b"[" * 100_000, b"\xff", b'"arrays"'])
def test_forged_text_is_refused(text):
    with pytest.raises(MessageError):
        received(forged(text))


def test_what_is_too_long_is_refused_before_it_is_read():
    with pytest.raises(MessageError, match="longer than allowed"):
        received(WHOLE, most=79)
    with pytest.raises(MessageError, match="longer than allowed"):
        received(header(_MOST_TEXT + 1, 0))
    with pytest.raises(MessageError, match="not of this version"):
        received(header(0, 0, b"fpa9"))


def test_silence_is_no_hang():
    one, other = pair()
    other.limit(0.05, None)
    with pytest.raises(ConnectionSilentError, match=r"silent for 0\.05 s") as raised:
        other.receive()
    assert blames_peers(raised.value)  # so that the supervisor looks for the one that hangs
    one.close()
    with pytest.raises(ConnectionClosedError):
        other.receive()
    other.close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch_workers": 0}, "batch_workers"),
        ({"compute_workers": 0}, "compute_workers"),
        ({"order": "random"}, "order: unknown value 'random'. Valid values are 'global', 'parts'"),
        ({"hold": 2}, 'hold: order="global" maps all parts'),
        ({"order": "parts", "hold": 0}, "hold: 0"),
        ({"cache": -1}, "cache: -1 is not a share"),
        ({"cache": 1.5}, "cache: 1.5 is not a share"),
        ({"policy": "fifo"}, "policy: unknown value 'fifo'. Valid values are 'static', 'lru'"),
        ({"ahead": 0}, "ahead: 0"),
        ({"model": "clustergcn"}, "model: 'clustergcn' needs sampled graphs"),
        ({"resume": True}, "resume: needs out="),
    ],
)
def test_refusals(given, message, armada_parts):
    with pytest.raises(fp.errors.ParameterError, match=message):
        fp.train.armada(armada_parts, **given)


@pytest.fixture(scope="module")
def armada_parts(tmp_path_factory):
    from trainable import planted

    return planted(tmp_path_factory.mktemp("planted"), k=3, n=100, m=400)
