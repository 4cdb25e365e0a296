"""How the processes of a run find each other, and the settings that they read.

The receiver writes its address to the folder of the run. Batch workers and compute machines read the settings there.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np

from .... import _core
from ....core.cache_size import CacheSize
from ....core.parsing import json_object
from ....errors import TrainingError
from ....loading.cached_rows import most_accessed_rows, refuse_large
from ....measures.accesses import Epoch
from ....partitions.partition import VertexPartition
from ....partitions.seeds import seeds_of
from ....partitions.types import ONLY_TYPE, Fanouts
from ....store import open_partition
from ...method_options import Order, Policy
from .cache import CacheIndex, RowIds, cache_index
from .graphs import Sampling
from .groups import Layout
from .messages import ConnectionClosedError, Kind, Link
from .schedule import Schedule


@dataclass(frozen=True)
class Settings:
    """The settings of a run.

    Attributes
    ----------
    source : str
        The partition directory.
    fanouts, batch_size, sampling, seed
        As in :func:`fastpart.train.sampled`.
    order, hold, cache, policy, ahead, batch_workers, compute_workers
        As in :func:`fastpart.train.armada`.
    first, local_workers : int
        The first compute worker of a machine, and their number there.
    timeout : float
        Seconds that processes wait for each other.
    token : str
        A secret that identifies the processes of the run.
    edge_features : bool
        Whether features of in-edges are sent.
    target : str
        The type of the training vertices.
    """

    source: str
    fanouts: Fanouts
    batch_size: int
    sampling: str
    seed: int
    order: Order
    hold: int
    cache: float | str
    policy: Policy
    ahead: int
    batch_workers: int
    compute_workers: int
    first: int
    local_workers: int
    timeout: float
    token: str
    edge_features: bool = False
    target: str = ONLY_TYPE

    def save(self, file: Path) -> None:
        """Write a file that only its owner can read, in a folder of the run."""
        _core.write_file(file, json.dumps(asdict(self)).encode())

    @classmethod
    def load(cls, file: Path) -> Settings:
        """Read what :meth:`save` wrote."""
        return cls(**json_object(file, None, {"source": str, "fanouts": list, "token": str}))


def cached_rows(cache: float | str, rows: Sequence[int], parts: int, row_bytes: Sequence[int]) -> list[int]:
    """Return how many rows of each type a compute machine caches: the same share of all types that have features."""
    size, total = CacheSize.of(cache), sum(map(mul, rows, row_bytes))
    if size.bytes is None:
        held = [size.held(count // parts, 0) for count in rows]
    else:
        held = [size.bytes * count // max(total, 1) for count in rows]
    return [min(most, count) if each else 0 for most, count, each in zip(held, rows, row_bytes, strict=True)]


class Source:
    """The partition directory of a run.

    Attributes
    ----------
    settings : Settings
        The run.
    partition : VertexPartition
        The directory.
    topology : Topology
        The in-edges of all parts, mapped.
    schedule : Schedule
        The training vertices of every step.
    layout : Layout
        The arrays of messages.
    starts : list of numpy.ndarray
        First row of each part among those of a type, and their number, by type.
    num_rows : list of int
        Rows of each type.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        partition = open_partition(settings.source)
        assert isinstance(partition, VertexPartition)
        self.partition, self.topology = partition, partition._topology
        self._seeds = seeds_of("train", partition, settings.target or None)
        self.schedule = Schedule(
            self._seeds,
            self.topology.starts,
            settings.batch_size,
            settings.seed,
            settings.order,
            settings.batch_workers,
            settings.hold,
        )
        self.layout = Layout.of(partition, settings.edge_features)
        self.starts = partition._rows_by_type.starts
        self.num_rows = [int(starts[-1]) for starts in self.starts]

    @property
    def sampling(self) -> Sampling:
        """How batches are sampled."""
        settings = self.settings
        return Sampling(settings.fanouts, settings.sampling, settings.seed, settings.edge_features)

    @cached_property
    def capacities(self) -> list[int]:
        """Rows of each type that fit the cache of a compute machine."""
        return cached_rows(self.settings.cache, self.num_rows, self.partition.k, self.layout.row_bytes)

    def refuse_large_cache(self) -> None:
        """Raise an error unless the cache fits the memory."""
        needed = sum(map(mul, self.capacities, self.layout.row_bytes))
        refuse_large(sum(self.capacities), needed // max(sum(self.capacities), 1), _core.memory_budget())

    def indexes(self, worker: int) -> list[CacheIndex]:
        """Return the contents of the cache by type, as a batch worker tracks them."""
        policy, workers = self.settings.policy, self.settings.batch_workers
        fixed = self.most_accessed() if policy == "static" else [np.empty(0, np.uint32)] * len(self.num_rows)
        of_types = zip(self.capacities, fixed, self.num_rows, strict=True)
        return [
            cache_index(policy, capacity, rows, worker, workers, count) for capacity, rows, count in of_types
        ]

    def most_accessed(self) -> list[RowIds]:
        """Return the rows of each type that the most batches have, as many as the cache holds. They ascend."""
        types, of_type = self.partition._rows_by_type.locate(np.arange(sum(self.num_rows), dtype=np.uint32))
        every = np.ones(self.partition.k, np.bool_)
        epoch = Epoch(
            self._seeds.rows, self.settings.fanouts, self.settings.batch_size, self.partition._types
        )
        found = []
        for number, capacity in enumerate(self.capacities):
            rows = np.flatnonzero(types == number).astype(np.uint32) if capacity else np.empty(0, np.uint32)
            found.append(of_type[most_accessed_rows(self.topology, every, rows, capacity, epoch)])
        return found


WAITS_FOR_PEERS = True
"""An error from here may be the fault of another process."""

_START_SECONDS = 120.0
_LOOK_SECONDS = 0.05
_NONCE_BYTES = _PROOF_BYTES = 32

_PROOF_SECONDS = 10.0
"""Time for a new connection to prove that it is of the run."""

_PAUSE_SECONDS = 0.05
"""Time after a connection that could not be accepted."""

ADDRESS = "receiver.json"

Address = tuple[str, int]


def listen(folder: Path, address: str) -> socket.socket:
    """Listen on a free port, and write where."""
    server = socket.create_server((address, 0))
    where = {"address": address, "port": server.getsockname()[1]}
    _core.write_file(folder / ADDRESS, json.dumps(where).encode())
    return server


def address_of(folder: Path) -> Address:
    """Return where the receiver listens whose settings are in a folder. Wait until it does."""
    deadline = time.monotonic() + _START_SECONDS
    while not (folder / ADDRESS).exists():
        if time.monotonic() > deadline:
            raise TrainingError(f"the receiver did not start within {_START_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)
    where = json_object(folder / ADDRESS, None, {"address": str, "port": int})
    return where["address"], where["port"]


def connect(address: Address, settings: Settings, who: Mapping[str, Any]) -> tuple[Link, dict[str, Any]]:
    """Connect to a receiver, and return its answer."""
    try:
        link = Link(socket.create_connection(address, timeout=_START_SECONDS))
    except OSError as error:
        raise TrainingError(f"the receiver at {address[0]} does not answer ({error})") from error
    try:
        link.limit(_START_SECONDS, _START_SECONDS)
        _prove(link, address[0], settings.token)
        link.send({"kind": Kind.HELLO, **who})
        welcome = link.receive()
        link.limit(None, None)
        return link, welcome.content
    except BaseException:
        link.close()
        raise


async def admit(server: socket.socket, token: str, most: int, welcome: Callable[[Link], None]) -> None:
    """Call ``welcome`` with each connection that proves that it knows the token, until the server is shut down.

    The oldest stranger gives way when there are too many. Processes of the run prove at once that they are of it, so
    the oldest is none of theirs.
    """
    loop, strangers = asyncio.get_running_loop(), dict[socket.socket, asyncio.Task[None]]()

    def leave(line: socket.socket, stranger: asyncio.Task[None]) -> None:
        strangers.pop(line, None)
        if stranger.cancelled() or stranger.exception():
            line.close()
        else:
            welcome(Link(line))

    server.setblocking(False)
    while server.fileno() >= 0:
        try:
            line, _ = await loop.sock_accept(server)
        except OSError:  # too many descriptors, a connection that is gone already, or the end
            await asyncio.sleep(_PAUSE_SECONDS)
            continue
        if len(strangers) >= most:
            strangers.pop(next(iter(strangers))).cancel()
        strangers[line] = loop.create_task(_examine(line, token))
        strangers[line].add_done_callback(partial(leave, line))
        await asyncio.sleep(0)  # let the others go on, however many come


async def _examine(line: socket.socket, token: str) -> None:
    """Prove to a new connection that this is the receiver of the run, after it has proved that it is of it."""
    loop, nonce, answer = asyncio.get_running_loop(), secrets.token_bytes(_NONCE_BYTES), b""
    line.setblocking(False)
    async with asyncio.timeout(_PROOF_SECONDS):
        await loop.sock_sendall(line, nonce)
        while (missing := _NONCE_BYTES + _PROOF_BYTES - len(answer)) > 0:
            data = await loop.sock_recv(line, missing)
            if not data:
                raise ConnectionResetError
            answer += data
        nonces = nonce + answer[:_NONCE_BYTES]
        if not hmac.compare_digest(answer[_NONCE_BYTES:], proof_of(token, "process", nonces)):
            raise PermissionError
        await loop.sock_sendall(line, proof_of(token, "receiver", nonces))


def _prove(link: Link, address: str, token: str) -> None:
    """Prove to a receiver that this process is of its run, and let it prove the same."""
    own = secrets.token_bytes(_NONCE_BYTES)
    nonces = link.read(_NONCE_BYTES) + own
    link.write(own + proof_of(token, "process", nonces))
    with suppress(ConnectionClosedError):
        if hmac.compare_digest(link.read(_PROOF_BYTES), proof_of(token, "receiver", nonces)):
            return
    raise TrainingError(f"the receiver at {address} is of another run")


def proof_of(token: str, role: str, nonces: bytes) -> bytes:
    """Return what only processes of the run can tell. It differs by role, so nobody can return a proof it was sent."""
    return hmac.digest(token.encode(), role.encode() + nonces, "sha256")
