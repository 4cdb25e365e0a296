"""Emulated machines: each has a network and a /dev/shm of its own, and the DGL that it finds."""

import os
import shutil
import subprocess
import sys

import pytest

PORT = 30050

# $1 = number of machines, $2 = folder, the rest = what to run on each, with MACHINE set; $QDISC = what tc
# does to packets for each; prints "machine i: exit code".
SCRIPT = r"""
set -eu
machines=$1 folder=$2; shift 2
ip link set lo up
ip link add bridge type bridge
ip link set bridge up
holders=()
for i in $(seq 0 $((machines - 1))); do
    mkfifo $folder/held$i
    unshare -mn bash -c "mount -t tmpfs tmpfs /dev/shm; ip link set lo up; echo > $folder/held$i; exec sleep 1000" &
    holders[$i]=$!
    read < $folder/held$i
    ip link add v$i type veth peer name e0 netns ${holders[$i]}
    ip link set v$i master bridge up
    if [ -n "$QDISC" ]; then tc qdisc add dev v$i root $QDISC; fi
    nsenter -t ${holders[$i]} -n ip addr add 10.77.0.$((i + 1))/24 dev e0
    nsenter -t ${holders[$i]} -n ip link set e0 up
    echo "10.77.0.$((i + 1)) PORT" >> $folder/machines.txt
done
jobs=()
for i in $(seq 0 $((machines - 1))); do
    MACHINE=$i nsenter -t ${holders[$i]} -n -m "$@" > $folder/out$i 2>&1 &
    jobs[$i]=$!
done
for i in $(seq 0 $((machines - 1))); do
    wait ${jobs[$i]} && echo "machine $i: 0" || echo "machine $i: $?"
    echo "left: $(nsenter -t ${holders[$i]} -m ls -A /dev/shm | tr '\n' ' ')"
done
kill ${holders[@]}
""".replace("PORT", str(PORT))

UNSHARED = (
    "unshare",
    "--user",
    "--map-root-user",
    "--mount",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
)


def needs_machines(qdisc=""):
    """Skip the test where nobody may emulate machines, or tc does not know such a network."""
    for tool in ("unshare", "nsenter", "ip", *(["tc"] if qdisc else [])):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    adding = "ip link add bridge type bridge"
    if qdisc:
        adding += f" && tc qdisc add dev bridge root {qdisc}"
    tried = subprocess.run([*UNSHARED, "sh", "-c", adding], capture_output=True)
    if tried.returncode:
        pytest.skip(f"no namespaces: {tried.stderr.decode()}")


def on_machines(count, folder, code, *arguments, qdisc="", timeout=200):
    """Run Python code on each machine. ``qdisc`` is what tc does to packets between them.

    Return for each its exit code, what is left in /dev/shm, and what it said.
    """
    command = [sys.executable, "-c", code, str(folder / "machines.txt"), *map(str, arguments)]
    made = subprocess.run(
        [*UNSHARED, "bash", "-c", SCRIPT, "bash", str(count), str(folder), *command],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TMPDIR": str(folder),
            "QDISC": qdisc,
        },
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    said = [(folder / f"out{i}").read_text() for i in range(count)] if made.returncode == 0 else []
    assert made.returncode == 0, made.stderr
    lines = made.stdout.splitlines()
    codes = [int(line.rpartition(" ")[2]) for line in lines[::2]]
    left = [line.removeprefix("left:").split() for line in lines[1::2]]
    return list(zip(codes, left, said, strict=True))
