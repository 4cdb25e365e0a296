"""doctor(): the facts of this machine, and each finding by a cause that is faked."""

import json
import os
import platform
import subprocess
import sys
import textwrap
from collections import namedtuple

import pytest

import fastpart as fp
from fastpart.core import system
from fastpart.measures import doctor as of_doctor
from fastpart.measures.reading import Disk

FLAGS = "fpu sse4_2 avx2 bmi2"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Fake 4 processors, no limits, disks that read 2 GB/s, no torch and no GPU. Return the folder of all that."""
    for name in ("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(system, "PROC", tmp_path / "proc")
    monkeypatch.setattr(system, "CONTROL_GROUPS", tmp_path / "groups")
    write(tmp_path / "proc/cpuinfo", f"processor\t: 0\nmodel name\t: Faked CPU\nflags\t\t: {FLAGS}\n")
    write(tmp_path / "proc/self/cgroup", "0::/job/step\n")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(of_doctor._core, "default_threads", lambda: 4)
    monkeypatch.setattr(of_doctor._core, "memory_budget", lambda: 8 << 30)
    monkeypatch.setattr(system, "memory_bytes", lambda: 16 << 30)
    monkeypatch.setattr(system, "address_space", lambda: None)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(Disk, "of", lambda _: Disk(100_000, 2e9))
    monkeypatch.setattr(of_doctor, "_WRITTEN", 1 << 20)
    monkeypatch.setattr(of_doctor, "_TORCH", "raise SystemExit('not asked')")
    monkeypatch.setattr(of_doctor.importlib.metadata, "version", missing)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "scratch").mkdir()
    return tmp_path


def missing(name):
    raise of_doctor.importlib.metadata.PackageNotFoundError(name)


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def findings(machine, **given):
    """Return the findings and their remedies as text."""
    found = fp.doctor(tmp_dir=machine / "scratch", **given)["findings"]
    assert all(each["finding"] and each["remedy"] for each in found)
    return [f"{each['finding']}. {each['remedy']}" for each in found]


def only(machine, **given):
    found = findings(machine, **given)
    assert len(found) == 1, found
    return found[0]


def test_a_good_machine_has_no_findings(machine):
    assert findings(machine) == []
    facts = fp.doctor(tmp_dir=machine / "scratch")
    assert facts["processor"]["name"] == "Faked CPU"
    assert facts["processor"]["features"] == ["sse4_2", "avx2", "bmi2"]
    assert "No cause was found" in str(facts)


def test_no_avx2(machine, monkeypatch):
    write(machine / "proc/cpuinfo", "flags : fpu sse4_2\n")
    assert "no AVX2" in only(machine)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert findings(machine) == []


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        (
            "0::/job/step\n",
            {"groups/job/cpu.max": "200000 100000\n", "groups/job/step/cpu.max": "max 100000\n"},
        ),
        (
            "0::/job/step\n",
            {"groups/job/cpu.max": "350000 100000\n", "groups/job/step/cpu.max": "250000 100000"},
        ),
        (
            "3:cpu,cpuacct:/a\n0::/\n",
            {"groups/cpu/a/cpu.cfs_quota_us": "200000\n", "groups/cpu/a/cpu.cfs_period_us": "100000\n"},
        ),
    ],
    ids=["above", "tightest", "version 1"],
)
def test_a_quota_of_processors(machine, monkeypatch, groups, files):
    write(machine / "proc/self/cgroup", groups)
    for name, text in files.items():
        write(machine / name, text)
    assert "There would be 4 threads, but this process may use 2 processors at a time" in only(machine)
    monkeypatch.setattr(of_doctor._core, "default_threads", lambda: 2)
    found = only(machine)
    assert "torch and Polars start a thread for each of 4" in found
    assert "Set OMP_NUM_THREADS=2 and POLARS_MAX_THREADS=2" in found
    assert "There would be 3 threads" in only(machine, threads=3)


def test_an_unlimited_group_of_version_1_is_no_limit(machine):
    write(machine / "proc/self/cgroup", "3:cpu:/\n4:memory:/\n")
    write(machine / "groups/cpu/cpu.cfs_quota_us", "-1\n")
    write(machine / "groups/cpu/cpu.cfs_period_us", "100000\n")
    write(machine / "groups/memory/memory.limit_in_bytes", "9223372036854771712\n")
    facts = fp.doctor(tmp_dir=machine / "scratch")
    assert (facts["memory"]["group"], facts["processor"]["quota"], facts["findings"]) == (None, None, [])


def test_more_threads_than_processors(machine):
    assert "There would be 9 threads, but this process may use 4 processors" in only(machine, threads=9)


def test_processors_that_the_process_may_not_use(machine, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr(of_doctor._core, "default_threads", lambda: 3)
    assert "may use 3 of the 4 processors" in only(machine)


@pytest.mark.parametrize(("name", "whose"), [("OMP_NUM_THREADS", "torch"), ("POLARS_MAX_THREADS", "Polars")])
def test_variables_that_limit_threads(machine, monkeypatch, name, whose):
    monkeypatch.setenv(name, "1")
    found = only(machine)
    assert found.startswith(f"{name}=1 is set, which lets {whose}")
    assert found.endswith(f"Unset {name}")
    monkeypatch.setenv(name, "4")
    assert findings(machine) == []


def test_a_control_group_below_the_memory(machine):
    write(machine / "groups/job/memory.max", f"{4 << 30}\n")
    write(machine / "groups/job/step/memory.max", "max\n")
    assert "The control group has 4.3 GB of the 17.2 GB of this machine" in only(machine)
    write(machine / "groups/job/memory.max", f"{32 << 30}\n")
    assert findings(machine) == []


def test_ulimit(machine, monkeypatch):
    monkeypatch.setattr(system, "address_space", lambda: 2 << 30)
    assert "ulimit -v lets this process have 2.1 GB" in only(machine)


def test_little_memory(machine):
    assert "The memory limit of calls is 500.0 MB" in only(machine, memory_limit=500_000_000)


def test_temporary_files_in_memory(machine):
    device = (machine / "scratch").stat().st_dev
    mounted = f"36 25 {os.major(device)}:{os.minor(device)} / /x rw - tmpfs tmpfs rw\n"
    write(machine / "proc/self/mountinfo", mounted)
    found = findings(machine)
    assert [each.partition(" lie in ")[0] for each in found] == ["Temporary files", "Conversions"]
    assert all("which is memory" in each for each in found)
    write(machine / "proc/self/mountinfo", mounted.replace("tmpfs tmpfs", "ext4 /dev/sda"))
    assert findings(machine) == []
    assert fp.doctor(tmp_dir=machine / "scratch")["disks"]["tmp_dir"]["file_system"] == "ext4"


def test_slow_disks(machine, monkeypatch):
    monkeypatch.setattr(Disk, "of", lambda files: Disk(100, 1e8 if "scratch" in str(files[0]) else 2e9))
    found = only(machine)
    assert "Temporary files lie in" in found
    assert "whose disk reads 100.0 MB in a second. Set TMPDIR" in found


def test_conversions_on_a_slower_disk(machine, monkeypatch):
    monkeypatch.setattr(Disk, "of", lambda files: Disk(100, 2e9 if "scratch" in str(files[0]) else 5e8))
    found = only(machine)
    assert "Conversions lie on another disk" in found
    assert "reads 500.0 MB instead of 2.0 GB in a second. Set XDG_CACHE_HOME" in found


def test_a_disk_without_room(machine, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(of_doctor.shutil, "disk_usage", lambda _: usage(1 << 20))
    found = findings(machine)
    assert len(found) == 2
    assert all("where 1.0 MB are free" in each for each in found)
    assert "too little to measure" in fp.doctor()["disks"]["tmp_dir"]["unknown"]


def test_a_folder_that_cannot_be_written(machine, monkeypatch):
    def refused(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(of_doctor.tempfile, "TemporaryDirectory", refused)
    assert all("which cannot be written (Permission denied)" in each for each in findings(machine))
    assert len(findings(machine)) == 2


def test_no_folder_of_temporary_files(machine, monkeypatch):
    def absent():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(of_doctor.tempfile, "gettempdir", absent)
    monkeypatch.setenv("TMPDIR", str(machine / "scratch/absent"))
    assert fp.doctor()["disks"]["tmp_dir"]["folder"] == str(machine / "scratch/absent")


def test_a_disk_that_only_the_page_cache_reads_is_said_to_be_unmeasured(machine, monkeypatch):
    monkeypatch.setattr(Disk, "of", lambda _: None)
    disk = fp.doctor(tmp_dir=machine / "scratch")["disks"]["tmp_dir"]
    assert (disk["read"], disk["reads"]) == (None, None)
    assert disk["unknown"] == "the file system does not read past the page cache"


def test_other_systems(machine, monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert "Darwin lacks the calls" in only(machine)


def test_variables_of_launchers_that_contradict_each_other(machine, monkeypatch):
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "PMI_RANK": "0", "PMI_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    assert only(machine).startswith("RANK: it says that this is process 1 of 2, but MPI says")
    monkeypatch.setenv("RANK", "0")
    assert fp.doctor(tmp_dir=machine / "scratch")["launcher"].endswith("process 0 of 2")


# torch, faked by a package for the process that asks it.


@pytest.fixture
def torch(machine, monkeypatch):
    """Return a function that installs a package torch with this code."""
    asked = of_doctor.__dict__["_TORCH"]
    assert "not asked" in asked
    monkeypatch.setattr(of_doctor, "_TORCH", ASKED)
    monkeypatch.setattr(
        of_doctor.importlib.metadata, "version", lambda name: "2.9" if name == "torch" else missing(name)
    )
    monkeypatch.setenv("PYTHONPATH", str(machine / "packages"))

    def install(cuda=None, gpus=0, more="", driver=()):
        code = f"""
        class version: cuda = {cuda!r}
        __version__ = "2.9"
        class cuda:
            is_available = staticmethod(lambda: {gpus} > 0)
            device_count = staticmethod(lambda: {gpus})
            get_device_name = staticmethod(lambda number: f"GPU {{number}}")
        {more}
        """
        write(machine / "packages/torch/__init__.py", textwrap.dedent(code))
        for number, model in enumerate(driver):
            write(machine / f"proc/driver/nvidia/gpus/{number}/information", f"Model: \t\t {model}\nIRQ: 3\n")

    return install


ASKED = of_doctor._TORCH


def test_torch_with_the_gpus_of_the_machine(machine, torch):
    torch("13.2", 2, driver=["NVIDIA H200", "NVIDIA H200"])
    assert findings(machine) == []
    facts = fp.doctor(tmp_dir=machine / "scratch")
    assert facts["gpus"] == ["NVIDIA H200"] * 2
    assert facts["torch"]["gpus"] == ["GPU 0", "GPU 1"]
    assert "2.9, CUDA 13.2, GPU 0, GPU 1" in str(facts)


def test_torch_without_cuda_beside_a_gpu(machine, torch):
    torch(driver=["NVIDIA H200"])
    assert "has 1 GPU (NVIDIA H200), but torch 2.9 was built without CUDA" in only(machine)


def test_torch_without_cuda_and_without_gpus_is_no_finding(machine, torch):
    torch()
    assert findings(machine) == []


def test_cuda_that_sees_no_gpu(machine, torch):
    torch("13.2", driver=["NVIDIA H200"])
    assert "but torch with CUDA 13.2 sees none. Look at CUDA_VISIBLE_DEVICES" in only(machine)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            "raise OSError('libcudart.so.13: cannot open')",
            "its import failed (OSError: libcudart.so.13: cannot",
        ),
        ("import os; os._exit(9)", "its import failed (exit status 9)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "its import failed (exit status -11)"),
        ("import atexit; atexit.register(print, 'bye')", "it did not answer"),
        ("import time; time.sleep(60)", "its import took more than 2 s"),
    ],
)
def test_torch_that_cannot_be_imported(machine, torch, monkeypatch, more, text):
    if "sleep" in more:
        monkeypatch.setattr(of_doctor, "_TORCH_SECONDS", 2)
    torch(more=more)
    found = only(machine)
    assert text in found
    assert found.startswith("torch 2.9 cannot be used")


# Facts of the machine that runs the tests.


def test_a_system_that_tells_nothing(machine, monkeypatch):
    for name in ("PROC", "CONTROL_GROUPS"):
        monkeypatch.setattr(system, name, machine / "absent")
    monkeypatch.setattr(system, "memory_bytes", lambda: None)
    monkeypatch.setattr(of_doctor.importlib.metadata, "requires", missing)
    facts = fp.doctor(tmp_dir=machine / "scratch")
    assert facts["processor"]["features"] is None
    assert facts["disks"]["tmp_dir"]["file_system"] is None
    assert facts["extras"] is None
    assert facts["findings"] == []
    assert "fastpart was not installed by pip" in str(facts)


def test_disks_are_measured_and_nothing_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache/below"))
    monkeypatch.setattr(
        of_doctor, "_torch", lambda: {"version": None, "installed": None, "unknown": "not asked"}
    )
    facts = fp.doctor(tmp_dir=tmp_path)
    assert os.listdir(tmp_path) == []
    for name, folder in (
        ("tmp_dir", tmp_path),
        ("conversions", tmp_path / "cache/below/fastpart/conversions"),
    ):
        disk = facts["disks"][name]
        assert disk["folder"] == str(folder)
        assert disk["write"] > 0
        assert (disk["read"] or 0) > 0 or disk["unknown"]
    assert json.loads(json.dumps(facts)) == facts
    assert "4 KiB reads" in facts._repr_html_()
    assert facts["peers"].keys() == {"metis", "kaminpar", "mtkahypar", "heistream", "buffcut"}


def test_conversions_are_counted(machine):
    (machine / "g.txt").write_text("0 1\n1 2\n")
    fp.open_graph(machine / "g.txt")
    facts = fp.doctor(tmp_dir=machine / "scratch")["conversions"]
    (entry,) = facts["entries"]
    assert entry["sources"] == [str(machine / "g.txt")]
    assert facts["bytes"] == entry["bytes"] > 16


def test_the_command(tmp_path):
    command = [sys.executable, "-m", "fastpart", "doctor", "--threads", "900", "--tmp-dir", str(tmp_path)]
    facts = json.loads(subprocess.run([*command, "--json"], capture_output=True, check=True).stdout)
    assert facts["processor"]["threads"] == 900
    assert any("There would be 900 threads" in each["finding"] for each in facts["findings"])
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "There would be 900 threads" in printed.stdout
    assert printed.stderr == ""
    assert os.listdir(tmp_path) == []
