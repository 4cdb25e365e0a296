"""The state of this machine: hardware, limits, disks and packages, and the causes of slow runs."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import _core
from ..core import system
from ..core.options import run_options, with_options
from ..core.parameters import StrPath, one_line, shown, sized
from ..core.protocols import Facts, Table, listed
from ..errors import FastpartError
from ..graphs import conversion_cache
from ..runtime import environment
from .compare.peers.registry import PEERS
from .reading import Disk

_WRITTEN = 64 << 20
"""Most bytes that a disk is measured with."""

_BLOCK = 4 << 20
"""Bytes that are written at a time."""

_MOST_SECONDS = 2.0
"""When a measurement of writes ends, if the disk has not taken all by then."""

_SLOW = 200_000_000
"""Bytes that the slowest disk reads in a second for which :func:`fastpart.info` predicts durations."""

_LITTLE = 1 << 30
"""Bytes of memory, or of a disk, below which larger graphs do not fit."""

_OF_THREADS = {"OMP_NUM_THREADS": "torch", "POLARS_MAX_THREADS": "Polars, which reads tables"}
"""Variables of the environment that limit threads, and the libraries that read them."""

_TORCH = """
import json, warnings
warnings.simplefilter("ignore")
import torch
usable = torch.cuda.is_available()
names = [torch.cuda.get_device_name(each) for each in range(torch.cuda.device_count())] if usable else []
print("\\n" + json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "gpus": names}))
"""
"""Code that asks torch in a process of its own: the import takes seconds, and may end the process."""

_TORCH_SECONDS = 120


class Diagnosis(Facts):
    """The state of a machine, from :func:`fastpart.doctor`.

    It is a dict, which prints as tables.
    """

    def _tables(self) -> list[Table]:
        found = [(f"{number}.", f"{each['finding']}. {each['remedy']}.") for number, each in self._numbered()]
        return [
            listed(self._machine()),
            self._disks(),
            listed(self._packages()),
            listed(found or [("none", "No cause was found.")], "causes of slow runs"),
        ]

    def _numbered(self) -> Iterator[tuple[int, dict[str, str]]]:
        return enumerate(self["findings"], 1)

    def _machine(self) -> Iterator[tuple[str, str]]:
        unit, memory, conversions = self["processor"], self["memory"], self["conversions"]
        yield "fastpart", f"{self['fastpart']}, Python {self['python']}, {self['system']}"
        yield "processor", one_line(unit["name"], 60)
        quota = "" if unit["quota"] is None else f", {unit['quota']:g} at a time"
        yield "cores", f"{unit['cores']}, of which this process may use {unit['usable']}{quota}"
        yield "threads", f"{unit['threads']:,}"
        yield "instructions", "unknown" if unit["features"] is None else " ".join(unit["features"]) or "none"
        yield "memory", _size(memory["machine"])
        for name, limit in (("control group", "group"), ("ulimit -v", "address_space")):
            yield name, "no limit" if memory[limit] is None else sized(memory[limit])
        yield "memory limit", f"{_size(memory['limit'])}, by default 80 % of what is left"
        number = len(conversions["entries"])
        yield (
            "conversions",
            f"{number:,} in {conversions['folder']}, {sized(conversions['bytes'])}",
        )
        if self["launcher"]:
            yield "started by", self["launcher"]

    def _disks(self) -> Table:
        columns = ("disk of", "folder", "file system", "free", "writes", "reads", "4 KiB reads")
        rows = []
        for name, disk in self["disks"].items():
            rates = [f"{sized(disk[each])}/s" if disk[each] else "-" for each in ("write", "read")]
            reads = f"{disk['reads']:,}/s" if disk["reads"] else "-"
            what = (name.replace("_", " "), shown(disk["folder"]), disk["file_system"] or "unknown")
            rows.append((*what, _size(disk["free"]), *rates, reads))
        return Table("", columns, rows, (0, 1, 2))

    def _packages(self) -> Iterator[tuple[str, str]]:
        torch = self["torch"]
        if torch["version"] is None:
            yield "torch", f"not usable: {torch['unknown']}"
        else:
            gpus = ", ".join(torch["gpus"]) or "no GPU"
            yield "torch", f"{torch['version']}, CUDA {torch['cuda'] or 'none'}, {gpus}"
        yield "peers", _versions(self["peers"])
        for extra, packages in (self["extras"] or {}).items():
            yield f"[{extra}]", _versions(packages)
        if self["extras"] is None:
            yield "extras", "unknown: fastpart was not installed by pip"


def _size(count: int | None) -> str:
    return "unknown" if count is None else sized(count)


def _versions(packages: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {version or '(missing)'}" for name, version in packages.items())


@with_options
def doctor(
    *, threads: int | None = None, tmp_dir: StrPath | None = None, memory_limit: int | str | None = None
) -> Diagnosis:
    """Examine this machine: its hardware, limits, disks and packages, and the causes of slow runs.

    Nothing stays on the disks. The folder of temporary files and that of conversions get a file of up to 64 MiB for
    some seconds, by which the disk is measured, with reads past the page cache.

    Parameters
    ----------
    threads, tmp_dir, memory_limit
        As in :class:`fastpart.Options`. The findings are those of calls with these options.

    Returns
    -------
    Diagnosis
        A dict, which prints as tables: ``fastpart``, ``python`` and ``system``, ``processor`` (``name``, ``cores``,
        ``usable`` by this process, the ``quota`` of its control group, ``threads``, ``features``), ``memory``
        (``machine``, the limits ``group`` and ``address_space``, and the memory ``limit`` of calls), ``disks``
        (``tmp_dir`` and ``conversions``: ``folder``, ``file_system``, ``free`` bytes, bytes per second of ``write`` and
        ``read``, 4 KiB ``reads`` per second, and the reason why a number is ``unknown``), ``conversions`` (``folder``,
        ``entries``, ``bytes``), ``gpus``, ``torch`` (``version``, ``cuda``, ``gpus`` that it can use), ``peers``,
        ``extras`` (by extra, the version of each package or None), ``launcher``, and ``findings``, a list of dicts with
        ``finding`` and ``remedy``. A fact that cannot be found is None.

    Examples
    --------
    >>> import fastpart as fp
    >>> facts = fp.doctor()
    >>> [each["remedy"] for each in facts["findings"]]  # doctest: +SKIP
    ['Unset OMP_NUM_THREADS']
    >>> facts["disks"]["tmp_dir"]["write"] > 0
    True
    """
    options = run_options(threads=threads, tmp_dir=tmp_dir, memory_limit=memory_limit)
    temporary = options.tmp_dir or _temporary()
    launcher, contradiction = _launcher()
    facts = Diagnosis(
        {
            "fastpart": _core.__version__,
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()}",
            "processor": {
                "name": system.processor(),
                "cores": os.cpu_count() or 1,
                "usable": system.usable_processors(),
                "quota": system.group_processors(),
                "threads": options.threads or _core.default_threads(),
                "features": system.processor_features(),
            },
            "memory": {
                "machine": system.memory_bytes(),
                "group": system.group_memory(),
                "address_space": system.address_space(),
                "limit": options.memory_limit or _core.memory_budget(),
            },
            "disks": {"tmp_dir": _disk(temporary), "conversions": _disk(_home())},
            "conversions": _conversions(),
            "gpus": system.graphics_processors(),
            "torch": _torch(),
            "peers": {name: peer.version for name, peer in PEERS.items()},
            "extras": _extras(),
            "launcher": launcher,
        }
    )
    findings = [*_of_processor(facts), *_of_memory(facts), *_of_disks(facts), *_of_torch(facts)]
    findings += [contradiction] if contradiction else []
    facts["findings"] = [{"finding": finding, "remedy": remedy} for finding, remedy in findings]
    return facts


# Facts.


def _home() -> Path:
    """Return the folder of conversions."""
    try:
        return conversion_cache.home() / "conversions"
    except RuntimeError:  # there is no home
        return _temporary()


def _temporary() -> Path:
    """Return the folder of temporary files, also where none can be written."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return Path(os.environ.get("TMPDIR") or "/tmp")


def _conversions() -> dict[str, Any]:
    found, unknown = [], None
    try:
        found = list(conversion_cache.entries())
    except (OSError, RuntimeError) as error:
        unknown = _reason(error)
    entries = [{"sources": each.sources, "bytes": each.bytes} for each in found]
    total = sum(each.bytes for each in found)
    return {"folder": str(_home()), "entries": entries, "bytes": total, "unknown": unknown}


def _disk(folder: Path) -> dict[str, Any]:
    """Measure the disk of a folder, which need not exist. ``unknown`` says why a number is None."""
    facts: dict[str, Any] = {"folder": str(folder), "unknown": None}
    facts |= dict.fromkeys(("file_system", "free", "write", "read", "reads"))
    try:
        there = next(each for each in (folder, *folder.parents) if each.is_dir())
        facts["file_system"] = system.file_system(there)
        facts["free"] = shutil.disk_usage(there).free
        if facts["free"] < 2 * _WRITTEN:
            facts["unknown"] = f"{sized(facts['free'])} are free, too little to measure the disk"
            return facts
        with tempfile.TemporaryDirectory(prefix="fastpart-", dir=there) as beside:
            file = Path(beside) / "measured"
            facts["write"] = _written(file)
            if facts["file_system"] in ("tmpfs", "ramfs"):
                facts["unknown"] = "the folder lies in memory"
            elif disk := Disk.of([file]):
                facts["read"], facts["reads"] = round(disk.bytes), round(disk.reads)
            else:
                facts["unknown"] = "the file system does not read past the page cache"
    except (OSError, FastpartError) as error:
        facts["unknown"] = _reason(error)
    return facts


def _written(file: Path) -> int:
    """Write a file, wait until the disk has it, and return the bytes per second."""
    block = os.urandom(_BLOCK)  # which no disk packs
    begin, count = time.perf_counter(), 0
    with file.open("xb", buffering=0) as opened:
        while count < _WRITTEN and time.perf_counter() - begin < _MOST_SECONDS:
            count += opened.write(block)
        os.fsync(opened.fileno())
    return round(count / (time.perf_counter() - begin))


def _torch() -> dict[str, Any]:
    """Ask torch, in a process of its own, for its version, its CUDA and the GPUs that it can use."""
    unknown: dict[str, Any] = {"version": None, "cuda": None, "gpus": []}
    try:
        installed = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return unknown | {"unknown": "it is not installed", "installed": None}
    unknown["installed"] = installed
    command = [sys.executable, "-P", "-c", _TORCH]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_TORCH_SECONDS
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            return unknown | {"unknown": f"its import failed ({one_line(last, 200)})"}
        told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return {**unknown, **told, "unknown": None}
    except subprocess.TimeoutExpired:
        return unknown | {"unknown": f"its import took more than {_TORCH_SECONDS} s"}
    except (OSError, ValueError, TypeError, IndexError) as error:
        return unknown | {"unknown": f"it did not answer ({_reason(error)})"}


def _extras() -> dict[str, dict[str, str | None]] | None:
    """Return the packages of each extra, with their versions. None: nothing says what the extras are."""
    try:
        required = importlib.metadata.requires("fastpart") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found: dict[str, dict[str, str | None]] = {}
    for each in required:
        name, extra = re.match(r"[\w.-]+", each), re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", each)
        if name and extra and name[0] != "fastpart" and extra[1] not in ("test", "lint"):
            found.setdefault(extra[1], {})[name[0]] = _version(name[0])
    return found


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _launcher() -> tuple[str | None, tuple[str, str] | None]:
    """Return what has started this process as one of several, and the finding if variables contradict each other."""
    try:
        ranks = environment.found()
    except FastpartError as error:
        remedy = (error.remedy or "Unset RANK and WORLD_SIZE").rstrip(".")
        return None, (f"{error.parameter}: {error.reason}", remedy)
    return None if ranks is None else f"{ranks.launcher}, process {ranks.rank} of {ranks.size}", None


def _reason(error: Exception) -> str:
    return one_line(getattr(error, "strerror", None) or str(error) or type(error).__name__, 200)


# Findings, each with its remedy.

Findings = Iterator[tuple[str, str]]


def _of_processor(facts: Diagnosis) -> Findings:
    unit = facts["processor"]
    features, threads, quota = unit["features"], unit["threads"], unit["quota"]
    if features is not None and "avx2" not in features and platform.machine() in ("x86_64", "AMD64"):
        yield (
            "The processor has no AVX2, so records and coded features are decoded one by one",
            "Use a processor with AVX2. A virtual machine needs the model of its host (-cpu host)",
        )
    most = unit["usable"] if quota is None else min(unit["usable"], max(int(quota), 1))
    if threads > most:
        yield (
            f"There would be {threads} threads, but this process may use {_processors(most)} at a time",
            f"Use {most} threads, or raise the quota of the container or the job",
        )
    elif most < unit["usable"]:
        yield (
            f"The control group lets this process use {_processors(most)} at a time, but torch and Polars start a "
            f"thread for each of {unit['usable']}",
            f"Set {' and '.join(f'{name}={most}' for name in _OF_THREADS)}, or raise the quota",
        )
    if unit["usable"] < unit["cores"]:
        yield (
            f"This process may use {unit['usable']} of the {_processors(unit['cores'])} of this machine",
            "Ask the batch system or the container for more, or start it without taskset",
        )
    for name, whose in _OF_THREADS.items():
        count = os.environ.get(name, "")
        if count.isdecimal() and 0 < int(count) < most:
            yield (
                f"{name}={count} is set, which lets {whose} use {count} of {_processors(most)}",
                f"Unset {name}",
            )


def _processors(count: int) -> str:
    return "1 processor" if count == 1 else f"{count} processors"


def _of_memory(facts: Diagnosis) -> Findings:
    memory = facts["memory"]
    machine, group, space = memory["machine"], memory["group"], memory["address_space"]
    if machine and group is not None and group < machine:
        yield (
            f"The control group has {sized(group)} of the {sized(machine)} of this machine",
            "Raise the memory of the container or the job for graphs that need more",
        )
    if machine and space is not None and space < machine:
        yield (
            f"ulimit -v lets this process have {sized(space)} of addresses, and mapped files count",
            "Raise it, or remove it (ulimit -v unlimited)",
        )
    if memory["limit"] < _LITTLE:
        yield (
            f"The memory limit of calls is {sized(memory['limit'])}, so larger graphs lie in temporary files",
            "End other programs, or use a machine with more memory",
        )


def _of_disks(facts: Diagnosis) -> Findings:
    remedies = {
        "tmp_dir": ("Temporary files", "Set TMPDIR to a folder of a local SSD"),
        "conversions": ("Conversions", "Set XDG_CACHE_HOME to a folder of a local SSD"),
    }
    for name, (what, remedy) in remedies.items():
        disk = facts["disks"][name]
        where = f"{what} lie in {shown(disk['folder'])}"
        if disk["file_system"] in ("tmpfs", "ramfs"):
            yield f"{where}, which is memory and counts against the memory limit", remedy
        elif disk["free"] is not None and disk["free"] < _LITTLE:
            yield f"{where}, where {sized(disk['free'])} are free", f"Free some space there. {remedy}"
        elif disk["write"] is None:
            yield f"{where}, which cannot be written ({disk['unknown']})", remedy
        elif disk["read"] is not None and disk["read"] < _SLOW:
            yield f"{where}, whose disk reads {sized(disk['read'])} in a second", remedy
    temporary, kept = (facts["disks"][name]["read"] for name in ("tmp_dir", "conversions"))
    if temporary and kept and kept >= _SLOW and 2 * kept < temporary:
        yield (
            f"Conversions lie on another disk than temporary files, which reads {sized(kept)} instead of "
            f"{sized(temporary)} in a second",
            remedies["conversions"][1],
        )


def _of_torch(facts: Diagnosis) -> Findings:
    torch, gpus = facts["torch"], facts["gpus"]
    if torch["installed"] is not None and torch["version"] is None:
        yield (
            f"torch {torch['installed']} cannot be used: {torch['unknown']}",
            "Reinstall it: pip install --force-reinstall 'fastpart[train]'",
        )
    elif torch["version"] is not None and gpus and not torch["gpus"]:
        has = f"{len(gpus)} {'GPU' if len(gpus) == 1 else 'GPUs'} ({gpus[0]})"
        if torch["cuda"] is None:
            yield (
                f"This machine has {has}, but torch {torch['version']} was built without CUDA",
                "Install torch with CUDA: pip install --force-reinstall torch",
            )
        else:
            yield (
                f"This machine has {has}, but torch with CUDA {torch['cuda']} sees none",
                "Look at CUDA_VISIBLE_DEVICES, and at the version of the driver (nvidia-smi)",
            )
    if platform.system() != "Linux":
        yield (
            f"{platform.system()} lacks the calls by which several processes are started and watched",
            "Train with `full` here. Use Linux, a container or WSL for the other methods",
        )
