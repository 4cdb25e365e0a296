"""What somebody else may put in the place of a file: every such case ends soon, and leaves the user's files alone.

``python plants.py ROOT [torch]`` is the child, which forks once for each case, so that nothing is imported twice. It
reads the numbers of commands, which it traces, and cases as JSON, one a line, and writes what is wrong.
"""

import ctypes
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from catalogue import HERE, build
from specimens import WITH_TORCH
from verbs import COMMANDS, Command
from work_readers import small_units

SECONDS, SECONDS_WITH_TORCH = 10, 30
"""Most time of a command, and of one that starts torch."""

SPACE = 4 << 30
"""Bytes of address space that a command may ask for."""

SECRET = b"of the user\n" * 40

_BY_CHANCE = re.compile(r"\.tmp-|\.old-|\.unpacked-|\.[0-9a-f]{8}|[0-9a-f]{16}|fastpart-job-|\.new$")
"""Names that nobody can guess, and those inside of folders that only fastpart makes."""


@dataclass(frozen=True)
class Case:
    """Something in the place of a file or folder that a command reads or writes."""

    command: int
    place: str
    plant: str
    written: bool
    """Whether the command writes it. Otherwise it is there before."""

    def __str__(self) -> str:
        does = "writes" if self.written else "reads"
        return f"{COMMANDS[self.command].name} {does} {self.place}: {self.plant}"


def _link(at: Path, user: Path) -> None:
    at.symlink_to(user / "notes.txt")


def _dangling(at: Path, user: Path) -> None:
    at.symlink_to(user / "new")


def _folder_link(at: Path, user: Path) -> None:
    at.symlink_to(user / "folder")


def _pipe(at: Path, user: Path) -> None:
    os.mkfifo(at)


def _zeros(at: Path, user: Path) -> None:
    at.symlink_to("/dev/zero")


def _folder(at: Path, user: Path) -> None:
    shutil.copytree(user / "folder", at)


PLANTS: dict[str, Callable[[Path, Path], None]] = {
    "a link to a file": _link,
    "a link to nothing": _dangling,
    "a link to a folder": _folder_link,
    "a pipe": _pipe,
    "zeros without end": _zeros,
    "a folder": _folder,
}

NAMED = {"a link to a file": "notes.txt", "a link to nothing": "new"}
"""What a command may write, with what belongs beside it, if the user has named the link to it as its output."""


class Refused(Exception):
    """A command does not end well although nothing is in the place of its files."""


class Field:
    """The folders of the cases: ``pristine`` specimens, and in ``field`` a copy, ``here``, and the ``user``'s files."""

    def __init__(self, root: Path) -> None:
        self._pristine, self._field = root / "pristine", root / "field"
        self.here, self.user = self._field / "here", self._field / "user"

    def fresh(self, specimen: str) -> None:
        """Make a new copy of a specimen, and the user's files."""
        shutil.rmtree(self._field, ignore_errors=True)
        (self.user / "folder" / "below").mkdir(parents=True)
        for name in ("notes.txt", "folder/mine.txt", "folder/below/data.npy"):
            (self.user / name).write_bytes(SECRET)
        shutil.copytree(self._pristine / specimen, self.here, copy_function=shutil.copyfile)
        if specimen in HERE:
            _apart(HERE[specimen], self.here)

    def traced(self, command: Command) -> tuple[list[str], list[str]]:
        """Return the files and folders that a command opens, and those that it makes, hidden ones too."""
        _apart(build, self._pristine, [command.specimen])
        self.fresh(command.specimen)
        before = set(_below(self.here))
        watch = _Watch(self.here)
        code, said = self._run(command)
        opened, made = watch.names()
        if code != 0:
            raise Refused(f"{command.name}: ends with {code} where all is whole: {said}")
        after = (set(_below(self.here)) | made) - before
        return sorted(opened & before), sorted(name for name in after if not _BY_CHANCE.search(name))

    def wrong(self, case: Case) -> str | None:
        """Run a command with something in the place of one of its files. Return what is wrong."""
        command = COMMANDS[case.command]
        self.fresh(command.specimen)
        at = self.here / case.place
        if at.is_dir() and not at.is_symlink():
            shutil.rmtree(at)
        else:
            at.unlink(missing_ok=True)
        at.parent.mkdir(parents=True, exist_ok=True)
        PLANTS[case.plant](at, self.user)
        before = _content(self.user)
        code, said = self._run(command)
        after = _content(self.user)
        if case.written and case.place in command.words.split() and case.plant in NAMED:
            to = NAMED[case.plant]  # the user named the link as the output, so it is followed
            before.pop(to, None)
            after = {name: content for name, content in after.items() if not name.startswith(to)}
        if case.place.split("/")[0] == "cache":  # which may lie anywhere, so only what is there must stay
            after = {name: content for name, content in after.items() if name in before}
        if after != before:
            names = sorted(
                name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
            )
            return f"the user's files changed: {', '.join(names)}"
        if case.plant == "a folder" and case.written and _mine_is_gone(at):
            return "what was in the user's folder is gone"
        if code is None:
            return "hangs"
        if code < 0:
            return f"killed by {signal.Signals(-code).name}: {said[-500:]}"
        if "Traceback" in said or "internal error" in said or "Exception ignored" in said:
            return f"raises: {said[-1500:]}"
        refusals = [line for line in said.splitlines() if line.startswith("fastpart: error:")]
        if code and len(refusals) != 1:
            return f"ends with {code} and says {said[-500:]!r}"
        return None

    def _run(self, command: Command) -> tuple[int | None, str]:
        """Run a command in a fork. Return its exit code, or None if it hangs, and what it said."""
        out = self._field / "said"
        child = os.fork()
        if not child:
            _command(command, self.here, out)
        code = _waited(child, SECONDS_WITH_TORCH if command.torch else SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if code is None:
            os.waitpid(child, 0)
        return code, out.read_text(errors="replace")


def _apart(function: Callable[..., object], *given: Any) -> None:
    """Call a function in a fork: it may start threads, which no later fork could use."""
    child = os.fork()
    if not child:
        code = 1
        try:
            function(*given)
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError(f"{function.__name__} failed")


def _command(command: Command, here: Path, out: Path) -> None:
    """Be a process that runs a command."""
    try:
        os.setsid()
        os.chdir(here)
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for stream in (1, 2):
            os.dup2(file, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ |= {"XDG_CACHE_HOME": str(here / "cache"), "TMPDIR": str(here.parent / "tmp")}
        os.environ["MPLCONFIGDIR"] = str(here.parents[1] / "matplotlib")  # what it caches is its own matter
        (here.parent / "tmp").mkdir()
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + SPACE, mapped + SPACE))
        from fastpart.cli import main

        words = [word.replace("HERE", str(here)) for word in command.words.split()]
        with small_units() if command.specimen == "interrupted" else nullcontext():
            code = main([*words, "--quiet"])
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(70)


def _waited(child: int, seconds: float) -> int | None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    return None


class _Watch:
    """What is opened and made in a folder and in the folders below it, by inotify."""

    _OPEN, _MADE = 0x20, 0x100 | 0x80

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None)
        self._handle = libc.inotify_init1(os.O_NONBLOCK)
        self._folders = {
            libc.inotify_add_watch(self._handle, os.fsencode(folder / name), self._OPEN | self._MADE): name
            for name in (".", *(name for name in _below(folder) if (folder / name).is_dir()))
        }

    def names(self) -> tuple[set[str], set[str]]:
        """Return what was opened and what was made, and close the watch."""
        opened: set[str] = set()
        made: set[str] = set()
        with suppress(BlockingIOError):
            while content := os.read(self._handle, 1 << 16):
                at = 0
                while at < len(content):
                    watch, kind, _, length = struct.unpack_from("iIII", content, at)
                    name = content[at + 16 : at + 16 + length].rstrip(b"\0").decode()
                    place = os.path.normpath(os.path.join(self._folders.get(watch, "."), name))
                    (made if kind & self._MADE else opened).add(place)
                    at += 16 + length
        os.close(self._handle)
        return opened, made


def _below(folder: Path) -> list[str]:
    return [str(file.relative_to(folder)) for file in folder.rglob("*")]


def _content(folder: Path) -> dict[str, Any]:
    """Return what a folder holds, with the times of its files."""
    return {
        str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns)
        if file.is_file()
        else None
        for file in folder.rglob("*")
    }


def _mine_is_gone(at: Path) -> bool:
    files = (at / "mine.txt", at / "below" / "data.npy")
    return not all(file.is_file() and file.read_bytes() == SECRET for file in files)


def serve(root: Path, torch: bool) -> None:
    """Trace the commands whose numbers come by stdin, and run their cases."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import fastpart.cli.app

    if torch:
        import torch_geometric  # noqa: F401

        import fastpart.train.methods.distgnn.worker  # noqa: F401

    say = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    (root / "pristine").mkdir(exist_ok=True)
    field = Field(root)
    print(json.dumps({"ready": True}), file=say, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            told: Any = (
                field.traced(COMMANDS[asked]) if isinstance(asked, int) else field.wrong(Case(**asked))
            )
        except Refused as error:
            told = {"refused": str(error)}
        print(json.dumps(told), file=say, flush=True)


class Child:
    """The process that runs the cases of one root."""

    def __init__(self, root: Path, torch: bool) -> None:
        root.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, str(root), *(["torch"] if torch else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._line()

    def cases(self, command: int) -> list[Case]:
        """Return all cases of a command."""
        told = self._ask(command)
        if isinstance(told, dict):
            raise Refused(told["refused"])
        reads, writes = told
        return [
            Case(command, place, plant, places is writes)
            for places in (reads, writes)
            for place in places
            for plant in PLANTS
        ]

    def wrong(self, case: Case) -> str | None:
        """Return what is wrong with how a case ends."""
        found: str | None = self._ask(asdict(case))
        return found

    def _ask(self, what: Any) -> Any:
        assert self._process.stdin is not None
        print(json.dumps(what), file=self._process.stdin, flush=True)
        return self._line()

    def _line(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process of the cases ended")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def numbers(torch: bool) -> Iterable[int]:
    """Return the numbers of the commands that run here."""
    return [number for number, each in enumerate(COMMANDS) if not each.torch or (torch and WITH_TORCH)]


if __name__ == "__main__":
    serve(Path(sys.argv[1]), len(sys.argv) > 2)
