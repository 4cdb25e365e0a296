"""Batch workers and their receiver, without models: what every step holds, whoever makes it and whoever dies."""

import errno
import json
import os
import signal
import socket
import tempfile
import threading
import time
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp
from fastpart import _core
from fastpart.runtime.watch import Supervisor
from trainable import planted

torch = pytest.importorskip("torch")

import armada  # noqa: E402
from armada import Processes, Run, running, settings_of  # noqa: E402
from fastpart.train.methods.armada import receiver, rendezvous  # noqa: E402
from fastpart.train.methods.armada.messages import (  # noqa: E402
    ConnectionClosedError,
    ConnectionSilentError,
    Link,
    MessageError,
    framed,
)
from fastpart.train.methods.armada.receiver import Peer  # noqa: E402
from fastpart.train.methods.armada.rendezvous import Source  # noqa: E402
from fastpart.train.options import mixed  # noqa: E402

K, EPOCHS, SIZE = 5, 2, 70


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=K, n=300, m=1500)


@pytest.fixture(scope="module")
def oracle(parts):
    """Return for every epoch and step what one process samples: rows of the seeds, and of all nodes, of each."""
    stored = fp.open_partition(parts)
    loader = stored.loader("train", fanouts=[4, 3], batch_size=SIZE, seed=0)
    return [list(loader) for _ in range(EPOCHS)]


def check(run, oracle, parts):
    """Assert that all seeds of every step are there once, with the neighbours and features of one process."""
    features = _core.Features(
        [part._file("features.npy") for part in fp.open_partition(parts).parts], run.source.topology
    )
    for number, steps in enumerate(oracle):
        for batches, expected in zip(run.epoch(number), steps, strict=True):
            seeds = np.concatenate([rows[: levels[0]] for _, levels, rows, *_ in batches])
            assert sorted(seeds) == sorted(expected.rows[: expected.batch_size])
            nodes = np.concatenate([rows for _, _, rows, *_ in batches])
            assert set(nodes) == set(expected.rows)
            edges = {edge for batch in batches for edge in edges_of(*batch[1:5])}
            indptr, indices = expected.indptr.numpy(), expected.indices.numpy()
            assert edges == edges_of(expected.num_sampled_nodes, expected.rows, indptr, indices)
            sizes = [
                sum(levels[0] for rank, levels, *_ in batches if rank == c) for c in range(len(run.links))
            ]
            assert max(sizes) - min(sizes) <= 1
            for _, _, rows, _, _, x in batches:
                assert np.array_equal(x, features.gather(rows))


def edges_of(levels, rows, indptr, indices):
    """Return the edges of a batch, each with its hop."""
    hop = np.repeat(np.arange(len(levels)), levels)
    targets = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return set(zip(hop[targets].tolist(), rows[targets].tolist(), rows[indices].tolist(), strict=True))


@settings(max_examples=25)
@given(st.data())
def test_every_seed_is_there_once_with_its_neighbours(parts, oracle, data):
    batch_workers, compute = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    policy, cache = (
        data.draw(st.sampled_from(["static", "lru"])),
        data.draw(st.sampled_from([0, 0.05, 0.4, 1])),
    )
    killed = data.draw(st.sets(st.integers(0, batch_workers - 1), max_size=batch_workers - 1))
    deaths = {
        worker: (data.draw(st.integers(0, 2 * len(oracle[0]))), data.draw(st.booleans())) for worker in killed
    }
    config = settings_of(
        parts,
        batch_size=SIZE,
        batch_workers=batch_workers,
        compute_workers=compute,
        policy=policy,
        cache=cache,
        ahead=data.draw(st.integers(1, 3)),
    )
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), config, deaths) as run:
        check(run, oracle, parts)


def swapped(parts, seed, epoch, batch_workers, hold):
    """Yield the schedule of the paper, slowly: for each batch worker and turn, what is held and what is trained on."""
    order = sorted(range(K), key=lambda part: mixed(seed, epoch, part))
    for worker in range(batch_workers):
        queue = order[worker::batch_workers]
        held, queue = queue[:hold], queue[hold:]
        turns = [(list(held), list(held))]
        for part in queue:
            held = [*held[1:], part]
            turns.append((held, [part]))
        yield turns


@pytest.mark.parametrize(
    ("batch_workers", "hold", "compute", "deaths"),
    [
        (1, 1, 1, {}),
        (1, 2, 2, {}),
        (2, 1, 3, {}),
        (2, 2, 1, {}),
        (2, 1, 2, {1: (2, False)}),
        (3, 9, 2, {0: (1, True)}),
    ],
)
@pytest.mark.parametrize("cache", [0, 0.3])
def test_parts_in_turn_are_those_of_one_process(parts, tmp_path, batch_workers, hold, compute, deaths, cache):
    stored = fp.open_partition(parts)
    topology, assignment = stored._topology, np.asarray(stored)
    records = np.fromfile(parts.parent / "g.bin", np.uint32).reshape(-1, 2)
    both = np.concatenate([records, records[:, ::-1]])
    train = np.flatnonzero([stored.parts[p].train[np.searchsorted(stored.parts[p].inner, v)]
                            for v, p in enumerate(assignment)])  # fmt: skip
    features = np.load(parts.parent / "g.bin.features.npy")
    given = {"order": "parts", "hold": hold, "batch_workers": batch_workers, "compute_workers": compute}
    config = settings_of(parts, batch_size=SIZE, cache=cache, fanouts=(-1, -1), **given)
    with running(tmp_path, config, deaths) as run:
        for epoch in range(EPOCHS):
            slices = list(swapped(parts, 0, epoch, batch_workers, hold))
            where = {}  # of each training vertex: the parts that are held
            for turns in slices:
                for held, new in turns:
                    where |= dict.fromkeys(train[np.isin(assignment[train], new)], held)
            assert sorted(where) == sorted(train)
            seen = []
            for batches in run.epoch(epoch):
                assert abs(sum(levels[0] for _, levels, *_ in batches) - len(train) / 3) <= batch_workers
                for _, levels, rows, indptr, indices, x in batches:
                    ids = topology.ids_of(rows)
                    seen += ids[: levels[0]].tolist()
                    assert np.array_equal(x, features[ids])
                    (held,) = {tuple(where[v]) for v in ids[: levels[0]]}
                    inside = both[np.isin(assignment[both], held).all(axis=1)]
                    for row, (start, end) in enumerate(pairwise(indptr)):
                        expected = inside[inside[:, 1] == ids[row], 0]
                        assert sorted(ids[indices[start:end]]) == sorted(expected)
            assert sorted(seen) == sorted(train)
        if not deaths:
            read = [stream._graphs.parts_read for stream in run.streams.values()]
            assert sum(read) == K * EPOCHS  # each part once in every epoch


def test_a_batch_worker_that_hangs_is_replaced(parts, oracle, tmp_path):
    """It is killed, and all that was its work comes from another one, to the last bit."""
    config = settings_of(parts, batch_size=SIZE, batch_workers=2, compute_workers=2, timeout=8.0, cache=0.3)
    with Supervisor(tmp_path) as group, closing(Processes(group, config, stopped=1)) as run:
        check(run, oracle, parts)
        assert (run.process(0).status(), run.process(1).status()) == (None, -signal.SIGKILL)


def test_the_last_batch_worker_is_not_killed(parts, tmp_path):
    config = settings_of(parts, batch_size=5, timeout=0.5)  # more steps than it makes before it is stopped
    with Supervisor(tmp_path) as group, closing(Processes(group, config, stopped=0)) as run:
        run.seconds = 2
        with pytest.raises(ConnectionSilentError):
            list(run.epoch(0))
        assert run.process(0).status() is None


def test_no_more_steps_are_made_than_may_be(parts, tmp_path):
    """While nothing is used, nothing more is made: neither in shared memory nor by the batch workers."""
    config = settings_of(parts, batch_size=5, batch_workers=2, ahead=3)
    with running(tmp_path, config) as run:
        epoch = run.epoch(0)
        next(epoch)
        deadline = time.monotonic() + 5
        while len(run.files()) < 6 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        assert len(run.files()) == 6  # 3 steps, a group of each batch worker
        assert {stream._progress.limit for stream in run.streams.values()} == {3}
        for _ in epoch:
            assert len(run.files()) <= 6 + 2  # those that were just used may not be free yet


def test_when_the_last_batch_worker_dies_the_receiver_fails(parts, tmp_path, monkeypatch):
    monkeypatch.setattr(receiver, "_LEFT_SECONDS", 0.2)
    run = Run(tmp_path, settings_of(parts, batch_size=10), {0: (2, True)})
    with pytest.raises(ConnectionClosedError):
        for _ in run.epoch(0):
            pass
    run.close()
    assert "all batch workers are gone" in str(run.errors[0])


def raw(run):
    where = json.loads((run.folder / "receiver.json").read_text())
    return socket.create_connection((where["address"], where["port"]))


STRANGERS = {
    "nothing": b"",
    "half a proof": bytes(40),
    "a browser": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3,
    "a proof with another token": bytes(64),
    "a batch": framed({"kind": "batch", "epoch": 0, "step": 0, "slices": [0]}, []),
    "a long one": b"\xff" * 100_000,
}


def is_closed(line):
    """Return whether a receiver closes a connection after its challenge, without another word."""
    line.settimeout(5)
    with suppress(ConnectionResetError):
        return line.recv(33, socket.MSG_WAITALL)[32:] == b""
    return True


def test_strangers_are_ignored(parts, oracle, tmp_path, monkeypatch):
    monkeypatch.setattr(rendezvous, "_PROOF_SECONDS", 0.2)
    with running(tmp_path, settings_of(parts, batch_size=SIZE)) as run:
        for text in STRANGERS.values():
            with raw(run) as line, suppress(ConnectionError):
                line.sendall(text)
                assert is_closed(line)
        check(run, oracle, parts)


def test_a_proof_of_one_connection_is_none_of_another(parts, tmp_path):
    with running(tmp_path, settings_of(parts)) as run:
        with raw(run) as one, raw(run) as other:
            nonces = one.recv(32, socket.MSG_WAITALL) + bytes(32)
            proof = nonces[32:] + rendezvous.proof_of(run.settings.token, "process", nonces)
            other.sendall(proof)
            assert is_closed(other)
            one.sendall(proof)
            answer = one.recv(32, socket.MSG_WAITALL)
            assert answer == rendezvous.proof_of(run.settings.token, "receiver", nonces)
        list(run.epoch(0))


def test_a_receiver_of_another_run_is_refused(parts, tmp_path):
    with running(tmp_path, settings_of(parts)) as run:
        with pytest.raises(fp.errors.TrainingError, match=r"the receiver at 127\.0\.0\.1 is of another run"):
            rendezvous.connect(rendezvous.address_of(tmp_path), settings_of(parts), {"batch worker": 0})
        list(run.epoch(0))


@pytest.mark.parametrize("answer", [lambda proof: bytes(32), lambda proof: proof])
def test_a_receiver_has_to_prove_itself_too(parts, tmp_path, answer):
    server = rendezvous.listen(tmp_path, "127.0.0.1")

    def imposter():
        line, _ = server.accept()
        with line:
            line.sendall(bytes(32))
            line.sendall(answer(line.recv(64, socket.MSG_WAITALL)[32:]))

    thread = threading.Thread(target=imposter)
    thread.start()
    try:
        with pytest.raises(fp.errors.TrainingError, match="is of another run"):
            rendezvous.connect(rendezvous.address_of(tmp_path), settings_of(parts), {"batch worker": 0})
    finally:
        thread.join()
        server.close()


def test_a_stranger_has_little_time_and_says_little(parts, oracle, tmp_path, monkeypatch):
    monkeypatch.setattr(rendezvous, "_PROOF_SECONDS", 0.6)
    with running(tmp_path, settings_of(parts, batch_size=SIZE)) as run, raw(run) as line:
        sent = 0
        with suppress(OSError):
            for _ in range(63):  # one byte at a time, each within the time
                line.sendall(b"f")
                time.sleep(0.05)
                sent += 1
        assert sent < 63
        check(run, oracle, parts)


def test_silent_strangers_keep_nobody_out(parts, oracle, tmp_path, monkeypatch):
    monkeypatch.setattr(receiver, "_MOST_STRANGERS", 3)
    monkeypatch.setattr(rendezvous, "_PROOF_SECONDS", 60.0)
    run = Run.__new__(Run)
    lines = []

    def crowded(folder, address):
        server = rendezvous.listen(folder, address)
        lines.extend(socket.create_connection(server.getsockname()) for _ in range(40))
        return server

    monkeypatch.setattr(armada, "listen", crowded)
    before = threading.active_count()
    run.__init__(tmp_path, settings_of(parts, batch_size=SIZE))
    check(run, oracle, parts)
    assert threading.active_count() - before < 20
    run.close()
    for line in lines:
        line.close()
    assert run.errors == []


class Failing(socket.socket):
    """A server whose descriptors are used up for a while."""

    outcomes = (errno.EMFILE, errno.ECONNABORTED, errno.ENOMEM)

    def accept(self):
        if self.outcomes:
            number, *self.outcomes = self.outcomes
            raise OSError(number, os.strerror(number))
        return super().accept()


def test_the_receiver_goes_on_after_a_connection_that_it_cannot_accept(parts, oracle, tmp_path, monkeypatch):
    def failing(folder, address):
        return Failing(fileno=rendezvous.listen(folder, address).detach())

    monkeypatch.setattr(armada, "listen", failing)
    with running(tmp_path, settings_of(parts, batch_size=SIZE)) as run:
        check(run, oracle, parts)


def test_a_peer_that_stops_reading_stops_nobody_and_is_named(parts):
    found = receiver.Receiver(Source(settings_of(parts)), "fastpart-0-00000000")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        link = Link(ours)
        link.limit(None, 0.5)
        peer = Peer("compute worker 3", link, found._fail)
        for _ in range(10_000):  # more than the kernel takes
            peer.post({"kind": "limit", "text": "x" * 1000})
        text = r"^compute worker 3 hangs: the other side reads nothing for 0.5 s"
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            pytest.raises(fp.errors.TrainingError, match=text),
        ):
            found.serve(server)


def test_only_who_has_work_and_sends_nothing_is_silent():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        peer = Peer("batch worker 0", Link(ours), pytest.fail)
        found = []
        for has_work, sent in [(True, 0), (True, 0), (True, 1), (True, 0), (False, 0), (True, 0)]:
            theirs.sendall(bytes(sent))
            peer.link.read(sent)
            peer.look(0.5, has_work)
            found.append(peer.silent_seconds)
        assert found == [0.5, 1.0, 0.0, 0.5, 0.0, 0.5]
        peer.leave(5)


def wrong_step(content, arrays):
    return {**content, "step": content["step"] + 1}, arrays


def wrong_slot(content, arrays):
    slots = np.full(len(arrays[1]) - len(arrays[0]) + 1, 7, np.int32)
    return content, [arrays[0][:-1], arrays[1], slots, *arrays[3:]]


def wrong_type(content, arrays):
    return content, [arrays[0].astype(np.float64), *arrays[1:]]


def too_few(content, arrays):
    return content, arrays[:-1]


def no_slices(content, arrays):
    return {**content, "slices": []}, arrays


@pytest.mark.parametrize("change", [wrong_step, wrong_slot, wrong_type, too_few, no_slices])
def test_nonsense_of_a_batch_worker_ends_the_receiver(parts, tmp_path, monkeypatch, change):
    send = Link.send

    def changed(self, content, arrays=()):
        return send(self, *(change(content, arrays) if content["kind"] == "batch" else (content, arrays)))

    monkeypatch.setattr(Link, "send", changed)
    run = Run(tmp_path, settings_of(parts, batch_size=SIZE))
    with pytest.raises(ConnectionClosedError):
        for _ in run.epoch(0):
            pass
    run.close()
    assert isinstance(run.receiver._error, MessageError)
