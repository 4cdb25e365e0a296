"""The options of every long call, `config`, the bar, and what `import fastpart` leaves alone."""

import asyncio
import inspect
import os
import re
import subprocess
import sys
import tempfile
import threading
import typing

import numpy as np
import pytest

import fastpart as fp
from fastpart.core import options
from fastpart.core.calls import full_signature
from fastpart.core.options import NAMES, RunOptions
from fastpart.partitions.partitioners import PARTITIONERS
from terminals import terminal

RING = np.array([[v, (v + 1) % 40] for v in range(40)])
LONG = {**PARTITIONERS} | {
    name: getattr(fp, name)
    for name in (
        "cluster", "compare", "convert", "evaluate", "home_parts", "info", "open_graph", "open_partition", "order",
    )
} | {name: getattr(fp.algorithms, name) for name in ("custom", "expected_cut")} | {
    f"generate.{name}": getattr(fp.generate, name) for name in fp.generate.__all__} | {
    f"export.{name}": getattr(fp.export, name) for name in fp.export.__all__
} | {"save": fp.VertexPartition.save, "degrees": fp.Graph.degrees}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_every_long_function_takes_all_of_them(name):
    function = LONG[name]
    known = full_signature(function).parameters
    assert set(NAMES) <= set(known)
    assert all(known[option].default is None for option in NAMES)
    assert name == "degrees" or f"    {', '.join(NAMES)}\n" in inspect.cleandoc(
        getattr(function, "full_doc", function.__doc__)
    ).replace("\n", "\n    ")
    with pytest.raises(TypeError, match=rf"has no parameter 'xyz'. Its parameters: .*{', '.join(NAMES)}"):
        function(xyz=1)


def test_each_is_documented_once():
    for name in NAMES:
        assert f"\n    {name} : " in fp.Options.__doc__
    assert typing.get_type_hints(fp.Options).keys() == set(NAMES)


def test_each_is_checked_before_anything_else():
    for name, value in (("threads", -1), ("memory_limit", "4X"), ("tmp_dir", "absent"), ("progress", 3)):
        for function in (fp.spring, fp.evaluate, fp.info, fp.cluster):
            with pytest.raises((fp.errors.ParameterError, TypeError), match=rf"^{name}: "):
                function("absent.bin", 2, **{name: value}) if function in (
                    fp.spring,
                    fp.evaluate,
                ) else function("absent.bin", **{name: value})


# config.


@options.with_options
def seen(**given: typing.Unpack[options.Options]) -> RunOptions:
    """Return what a function is given."""
    return options.run_options(**given)


def test_config_nests_and_explicit_arguments_win(tmp_path):
    assert seen() == RunOptions()
    with fp.config(threads=4, memory_limit="1K"):
        assert (seen().threads, seen().memory_limit) == (4, 1024)
        assert (seen(threads=2).threads, seen(threads=None).threads) == (2, None)
        with fp.config(threads=3, tmp_dir=tmp_path):
            assert seen() == RunOptions(threads=3, memory_limit=1024, tmp_dir=tmp_path)
        assert (seen().threads, seen().tmp_dir) == (4, None)
        with pytest.raises(ZeroDivisionError), fp.config(threads=7):
            raise ZeroDivisionError
        assert seen().threads == 4
    assert seen() == RunOptions()


def test_config_reaches_the_calls_within(tmp_path):
    heard = []
    with fp.config(progress=lambda *step: heard.append(step)):
        p = fp.spring(RING, 2)
    assert heard
    heard.clear()
    fp.evaluate(RING, p)
    assert not heard
    with fp.config(memory_limit=100), pytest.raises(fp.errors.MemoryBudgetError, match="100 bytes"):
        fp.spring(RING, 2)
    with fp.config(threads=2):
        assert (fp.spring(RING, 2).assignment == p.assignment).all()


def test_config_belongs_to_its_task_and_its_thread():
    async def task(threads):
        with fp.config(threads=threads):
            await asyncio.sleep(0)
            return seen().threads

    async def several():
        return await asyncio.gather(*(task(threads) for threads in (1, 2, 3)))

    assert asyncio.run(several()) == [1, 2, 3]
    there = []
    with fp.config(threads=5):
        other = threading.Thread(target=lambda: there.append(seen().threads))
        other.start()
        other.join()
        assert there == [None]
        assert asyncio.run(_inherited()) == 5


async def _inherited():
    return (await asyncio.to_thread(seen)).threads


@pytest.mark.parametrize("name", ["seed", "balance", "k", "epochs"])
def test_config_refuses_what_is_another_s(name):
    with pytest.raises(TypeError, match=rf"takes only .*\. Pass '{name}' to each call"):
        fp.config(**{name: 1})
    with pytest.raises(TypeError, match=r"takes only .*\. Did you mean 'threads'\?"):
        fp.config(treads=1)


def test_config_checks_at_once():
    with pytest.raises(fp.errors.ParameterError, match=r"^threads: -1 "):
        fp.config(threads=-1)
    with pytest.raises(TypeError, match=r"^progress: "):
        fp.config(progress="bar")


# The bar.


WIPED = rb"\r +\r"


def shown_by(code):
    """Run code on a terminal; return exit code and what the terminal got."""
    code, _, shown = terminal(sys.executable, "-c", code)
    return code, shown


BEGIN = "import numpy as np, fastpart as fp\nring = np.array([[v, (v + 1) % 400] for v in range(400)])\n"


@pytest.mark.parametrize(
    "call",
    [
        "fp.spring(ring, 2, progress=True)",
        "with fp.config(progress=True): fp.spring(ring, 2)",
        "fp.compare(ring, 2, ['spring', 'hash'], progress=True)",
    ],
)
def test_a_bar_shows_the_time_left_and_is_wiped(call):
    code, shown = shown_by(BEGIN + call)
    assert code == 0
    assert re.search(rb"\r[\w ,=:]+: +\d+%\|.*\| \d+/\d+ \[\d\d:\d\d<", shown)
    assert re.search(WIPED + rb"$", shown)


def test_a_bar_of_many_units_has_no_counts():
    code, shown = shown_by(BEGIN + "fp.spring(np.tile(ring, (250, 1)), 2, progress=True)")
    assert code == 0
    assert re.search(rb"\r[\w ]+: +\d+%\|.*\| \d\d:\d\d min, [\d?][\d:]* left", shown)
    assert re.search(WIPED + rb"$", shown)


def test_no_bar_unless_asked_for():
    calls = [f"fp.spring(ring, 2, {given})" for given in ("", "progress=None", "progress=False")]
    configured = [f"with fp.config(progress=True): {call}" for call in calls[1:]]
    assert shown_by(BEGIN + "\n".join(calls + configured)) == (0, b"")


@pytest.mark.parametrize("failure", ["KeyboardInterrupt", "LookupError"])
def test_a_bar_is_wiped_before_the_error_is_shown(failure):
    code, shown = shown_by(
        f"""{BEGIN}
def parts(records):
    if (records == 99).any():
        raise {failure}
    return records[:, 0], records[:, 0] % 2
fp.algorithms.custom(ring, 2, parts, progress=True, block=8)
"""
    )
    assert code != 0
    assert re.search(rb"custom: +\d+%.*" + WIPED + rb"Traceback[^%]*" + failure.encode(), shown, re.DOTALL)


# Imports.


def test_an_import_takes_nothing_heavy():
    code = "import sys, fastpart; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    found = set(done.stdout.split())
    assert not found & {
        "numpy",
        "msgspec",
        "polars",
        "torch",
        "dgl",
        "matplotlib",
        "jinja2",
        "tqdm",
        "cyclopts",
    }
    assert not found & {"pandas", "scipy", "asyncio", "dataclasses", "socket", "hashlib", "zipfile"}
    assert {name for name in found if name.startswith("fastpart.")} == {"fastpart._core", "fastpart.errors"}


def test_what_is_imported_later_is_there():
    code = "import fastpart as fp; assert {*fp.__all__} <= {*dir(fp)}; [getattr(fp, name) for name in fp.__all__]"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
    with pytest.raises(AttributeError, match="'fastpart' has no attribute 'sprung'"):
        _ = fp.sprung


def test_a_temporary_folder_is_used_by_all(tmp_path):
    with fp.config(tmp_dir=tmp_path):
        graph = fp.open_graph(RING)
        p = fp.sigma(graph, 2)
        p.save(tmp_path / "parts", graph=graph)
        fp.evaluate(graph, p)
    assert sorted(os.listdir(tmp_path)) == ["parts"]
    assert tempfile.gettempdir() != str(tmp_path)
