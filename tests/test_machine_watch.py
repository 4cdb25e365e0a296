"""The connection between the supervisors of machines, over a network that splits what is sent."""

import socket
import threading
import time

import pytest

import fastpart as fp
from fastpart.runtime.machine_watch import MachineWatch


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def watch_of(says):
    """Return the connections of machine 0 to a machine that speaks so."""
    port, lines = free_port(), []

    def speak():
        deadline = time.monotonic() + 10
        while not lines and time.monotonic() < deadline:
            try:
                lines.append(socket.create_connection(("127.0.0.1", port)))
            except OSError:
                time.sleep(0.02)
        says(lines[0])

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    watch = MachineWatch(["127.0.0.1", "127.0.0.2"], port, 0, 10)
    thread.join(10)
    return watch, lines[0]


def in_pieces(*pieces):
    def say(line):
        for piece in pieces:
            line.sendall(piece)
            time.sleep(0.1)

    return say


def test_a_hello_in_pieces_is_read():
    watch, line = watch_of(in_pieces(b"fast", b"part", b" 1", b"\n"))
    assert list(watch.lines.values()) == [1]
    (ours,) = watch.lines
    line.sendall(b"do")
    time.sleep(0.1)
    assert watch.read(ours) == []
    line.sendall(b"ne\n")
    time.sleep(0.1)
    assert watch.read(ours) is None
    watch.close()
    line.close()


@pytest.mark.parametrize("what", [b"do", b"other", b""])
def test_a_machine_that_leaves_without_the_word_has_failed(what):
    watch, line = watch_of(in_pieces(b"fastpart 1\n"))
    (ours,) = watch.lines
    line.sendall(what)
    line.close()
    time.sleep(0.1)

    def read():
        while watch.read(ours) == []:
            pass

    with pytest.raises(fp.errors.TrainingError, match=r"^machine 1 \(127.0.0.2\) failed or went silent"):
        read()
    watch.close()
