"""Cases in a child process that may crash, hang or ask for too much memory, and what they find.

``python attempts.py ROOT WHICH`` is the child: it reads numbers of cases and writes how they end, one JSON each.
"""

import faulthandler
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SECONDS, SECONDS_OF_PROCESSES = 20, 180
"""Most time of a reader on a busy machine, and of one that starts processes that import torch."""

SPACE = 4 << 30
"""Bytes of address space that a case may ask for."""


@dataclass
class Outcome:
    """How a case ended: the readers that read or refused it, and what is wrong."""

    number: int
    specimen: str = ""
    file: str = ""
    told: str = ""
    read: int = 0
    refused: int = 0
    problems: list[dict[str, str]] = field(default_factory=list)


def outcomes(root: Path, numbers: Iterable[int], which: str = "all") -> Iterator[Outcome]:
    """Yield how the cases end. The specimens are in ``root``, or are made there. See :class:`cases.Attack`."""
    child = None
    try:
        for number in numbers:
            child = child or _Child(root, which)
            outcome = child.run(number)
            yield outcome
            if child.over:
                child = child.end()
    finally:
        if child is not None:
            child.end()


class _Child:
    def __init__(self, root: Path, which: str) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed by end)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(root), which],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, "TMPDIR": str(root / "tmp"), "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        self._buffer = b""
        self.over = False
        if self._line(120) != {"ready": True}:
            raise RuntimeError(f"no specimens: {self._tail()}")

    def run(self, number: int) -> Outcome:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number}\n".encode())
        self._process.stdin.flush()
        outcome, reader = Outcome(number), "the change"
        while True:
            line = self._line(SECONDS_OF_PROCESSES if reader.endswith("_by_processes") else SECONDS)
            if line is None:
                self.over = True
                outcome.problems.append(self._death(reader))
                return outcome
            if "case" in line:
                outcome.specimen, outcome.file, outcome.told = (
                    line["case"][name] for name in ("specimen", "file", "told")
                )
            elif "begin" in line:
                reader = line["begin"]
            elif line.get("end") == "read":
                outcome.read += 1
            elif line.get("end") == "refused":
                outcome.refused += 1
            elif "end" in line:
                outcome.problems.append(line["end"])
            else:
                return outcome

    def _line(self, seconds: float) -> dict[str, Any] | None:
        """Return what the child says, or None if it says nothing for so long, or has ended."""
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._buffer:
            if not select.select([pipe], [], [], seconds)[0]:
                return None
            piece = os.read(pipe, 1 << 16)
            if not piece:
                return None
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _death(self, reader: str) -> dict[str, str]:
        """Return what is wrong with a child that says nothing."""
        try:
            code = self._process.wait(2)
            what = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        except subprocess.TimeoutExpired:
            os.kill(self._process.pid, signal.SIGABRT)  # faulthandler says where it is
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            what = "hangs"
        return {"reader": reader, "what": what, "where": reader, "text": self._tail()}

    def _tail(self) -> str:
        return os.pread(self._said.fileno(), 1 << 20, 0).decode(errors="replace")[-3000:]

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._said):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def serve(root: Path, which: str) -> None:
    """Run the cases whose numbers come by stdin."""
    faulthandler.enable()
    from cases import Attack, Problem
    from catalogue import SPECIMENS, build
    from specimens import WITH_TORCH

    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def say(**what: Any) -> None:
        out.write(json.dumps(what, default=str) + "\n")
        out.flush()

    (root / "tmp").mkdir(exist_ok=True)
    (root / "pristine").mkdir(exist_ok=True)
    build(root / "pristine", list(SPECIMENS))
    if WITH_TORCH and which != "others":
        import torch_geometric  # noqa: F401
        from readers import trained_whole

        trained_whole(root / "pristine" / "plain", root / "tmp")  # its first call imports much
        shutil.rmtree(root / "tmp" / "run")
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + SPACE, mapped + SPACE))
    attack = Attack(root, which)
    say(ready=True)
    for line in sys.stdin:
        for kind, value in attack.run(int(line)):
            say(**{kind: asdict(value) if isinstance(value, Problem) or kind == "case" else value})
        say(over=int(line))


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2])
