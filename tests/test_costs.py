"""What an epoch costs, told before a training, against what the training counts."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from attributed import attributed
from fastpart.cli import main
from fastpart.measures.reading import BLOCK, Disk, EpochReads, FeatureSizes, bytes_of_blocks, ways
from typed_training import WIDTHS, typed_parts

DISK = Disk(reads=1000.0, bytes=1e7)
READS = EpochReads(steps=10, rows=1000, row_bytes=400_000, read_bytes=8_192_000, coded_bytes=4_096_000)
STORED = FeatureSizes(rows=5000, bytes=2_000_000, coded_bytes=540_000)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    graph, rows = attributed(dtype=np.float32)
    folder = tmp_path_factory.mktemp("costs") / "parts"
    fp.algorithms.hash(graph, 4).save(folder, **rows)
    return folder


@given(
    st.sets(st.integers(0, 299), max_size=60),
    st.lists(st.integers(0, 300), max_size=3),
    st.integers(1, 9000),
)
def test_blocks_of_rows_are_counted_once(rows, ends, row_bytes):
    rows, starts = np.array(sorted(rows), np.uint32), np.array([0, *sorted(ends), 300])
    blocks = set()
    for row in rows.tolist():
        part = np.searchsorted(starts, row, side="right") - 1
        first = (row - int(starts[part])) * row_bytes
        blocks |= {(part, block) for block in range(first // BLOCK, (first + row_bytes - 1) // BLOCK + 1)}
    assert bytes_of_blocks(rows, starts, row_bytes) == BLOCK * len(blocks)


def named(found):
    return {way.way: way for way in found}


def test_ways_take_what_the_rates_say():
    found = named(ways(READS, DISK, STORED, 100, 3))
    assert list(found) == ["maps", "direct", "8 bits, direct", "plan"]
    assert (found["maps"].bytes, found["maps"].seconds) == (None, None)
    assert (found["direct"].bytes, found["direct"].seconds) == (8_192_000, 2.0)
    assert (found["8 bits, direct"].bytes, found["8 bits, direct"].seconds) == (4_096_000, 1.0)
    plan = found["plan"]
    assert (plan.bytes, plan.seconds) == (400_000, 0.04)
    assert (plan.once_bytes, plan.once_seconds) == (2_000_000 + 3 * 400_000, pytest.approx(0.32))
    fast = Disk(1e9, 1e6)
    assert named(ways(READS, fast, STORED, 100, 3))["direct"].seconds == 8.192


def test_what_fits_is_read_once():
    found = named(ways(READS, DISK, STORED, 600_000, 3))
    assert list(found) == ["maps", "direct", "8 bits, maps", "plan"]
    assert (found["8 bits, maps"].bytes, found["8 bits, maps"].once_bytes) == (0, 540_000)
    maps = named(ways(READS, DISK, STORED, 2_000_000, 3))["maps"]
    assert (maps.bytes, maps.seconds, maps.once_bytes, maps.once_seconds) == (0, 0, 2_000_000, 0.2)
    coded = replace(STORED, bytes=540_000)
    assert list(named(ways(READS, DISK, coded, 100, 3))) == ["maps", "direct", "plan"]
    unknown = ways(READS, None, STORED, 100, 3)
    assert list(named(unknown)) == ["maps", "plan"]
    assert unknown[-1].seconds is None


@pytest.mark.torch
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("more", [{}, {"sampling": "labor", "batch_size": None}, {"ahead": 0}, {"ahead": 3}])
def test_a_training_counts_what_was_told(parts, workers, more):
    from fastpart.train.costs import costs

    options = {"fanouts": [4, 3], "batch_size": 32, "seed": 3, "workers": workers, "hidden": 8} | more
    told = costs(parts, **options)
    run = fp.train.sampled(parts, epochs=1, io="direct", **options)
    assert run.history["rows"].to_list() == [told.reads.rows]
    assert run.history["read_bytes"].to_list() == [told.reads.read_bytes]
    assert run.history["remote_rows"].to_list() == [told.reads.remote_rows]
    assert run.history["remote_bytes"].to_list() == [told.reads.remote_bytes]
    assert told.reads.remote_bytes == told.reads.remote_rows * 24
    assert (told.reads.remote_rows > 0) == (workers > 1)
    assert told.reads.steps == (1 if "batch_size" in more else -(-told.training // 32))
    assert (told.workers, told.refusal) == (workers, None)
    assert told.stored.bytes == 300 * 24
    assert json.loads(json.dumps(told.rows()))["reads"]["rows"] == told.reads.rows


@pytest.mark.torch
@pytest.mark.parametrize(
    ("workers", "widths", "more"),
    [
        (2, WIDTHS, {"sampling": "labor"}),
        (2, {"field": 2}, {"ahead": 0, "fanouts": {"cites": [4, 3], "rev_has_topic": [3, 2]}}),
        (1, {"field": 2, "paper": 5}, {"ahead": 3}),
    ],
)
def test_a_training_over_types_counts_what_was_told(tmp_path, workers, widths, more):
    from fastpart.train.costs import costs

    typed_parts(tmp_path, 3, widths=widths)
    options = {
        "fanouts": [4, 3],
        "batch_size": 20,
        "seed": 3,
        "workers": workers,
        "model": "rgcn",
        "hidden": 8,
    }
    options |= more
    told = costs(tmp_path / "parts", **options)
    run = fp.train.sampled(tmp_path / "parts", epochs=1, io="direct", **options)
    counted = {
        name: run.history[name].item() for name in ("rows", "read_bytes", "remote_rows", "remote_bytes")
    }
    assert counted == {name: getattr(told.reads, name) for name in counted}
    assert (told.target, told.training, told.reads.steps, told.refusal) == ("paper", 60, 3, None)
    sizes = {each.name: each.n for each in fp.open_partition(tmp_path / "parts").parts[0].types}
    assert told.stored.bytes == sum(4 * sizes[name] * width for name, width in widths.items())
    planned = fp.open_partition(tmp_path / "parts").plan(
        3,
        workers=workers,
        **{name: options[name] for name in ("fanouts", "batch_size", "seed", "sampling") if name in options},
    )
    assert named(told.ways)["plan"].bytes == told.reads.row_bytes
    assert planned.workers["rows"].sum() == pytest.approx(3 * told.reads.rows, rel=0.1)
    assert "plan: packed rows of 3 epochs" in str(told)
    assert json.loads(json.dumps(told.rows()))["reads"]["rows"] == told.reads.rows


@pytest.mark.torch
def test_info_says_what_a_training_takes(parts, capsys):
    given = {"fanouts": [4, 3], "batch_size": 32, "workers": 2}
    facts = fp.info(parts, train=given, memory_limit="2G")
    assert (facts["workers"], facts["batch_size"], facts["limit"]) == (2, 32, 2 << 30)
    assert str(facts).startswith("training  ")
    assert facts["advice"] in str(facts)
    assert facts["advice"] in facts._repr_html_()
    call = ["info", str(parts), "--train", "--fanouts", "4,3", "--batch-size", "32", "--workers", "2"]
    assert main([*call, "--json", "--memory-limit", "2G"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["reads"] == json.loads(json.dumps(facts))["reads"]
    assert fp.info(fp.open_partition(parts), train=True)["workers"] >= 1


@pytest.mark.torch
@pytest.mark.parametrize(
    ("train", "more", "error", "text"),
    [
        ({"wokers": 2}, {}, TypeError, "has no parameter 'wokers'. Did you mean 'workers'"),
        ({"fanouts": [2, -2]}, {}, fp.errors.ParameterError, "fanouts"),
        (3, {}, TypeError, "train: expected True or parameters of the training by name, got int"),
        (True, {"cluster": 2}, fp.errors.ParameterError, "cluster: a training has no estimates of it"),
    ],
)
def test_info_refuses(parts, train, more, error, text):
    with pytest.raises(error, match=text):
        fp.info(parts, train=train, **more)


@pytest.mark.torch
def test_one_of_several_types_to_train_is_named(tmp_path, capsys):
    typed_parts(tmp_path, 2)
    graph = fp.open_graph(tmp_path / "g.bin")
    labels = {each.name: np.arange(each.n) % 2 for each in graph.types if each.name != "author"}
    splits = {name: {"train": np.arange(5)} for name in labels}
    fp.algorithms.hash(graph, 2).save(tmp_path / "two", labels=labels, splits=splits)
    call = ["info", str(tmp_path / "two"), "--train"]
    assert main(call) == 2
    assert (
        "field, paper have labels and training vertices. Name one of them with --target"
        in capsys.readouterr().err
    )
    assert main([*call, "--target", "field"]) == 0
    assert "5 vertices of field" in capsys.readouterr().out


@pytest.mark.torch
def test_types_without_features_read_nothing(tmp_path, capsys):
    typed_parts(tmp_path, 2, widths={})
    assert main(["info", str(tmp_path / "parts"), "--train", "--model", "rgcn", "--batch-size", "20"]) == 0
    text = capsys.readouterr().out
    assert "60 vertices of paper, 3 steps of 20" in text
    assert text.endswith("No type has features. Their rows are learned, and none are read.\n")


@pytest.mark.torch
def test_advice_says_what_pays(parts):
    from fastpart.train.costs import costs

    told = replace(
        costs(parts, fanouts=[4, 3], batch_size=32, workers=1),
        reads=READS,
        stored=STORED,
        disk=DISK,
        needed=0,
    )

    def advice(memory, **other):
        changed = replace(told, limit=memory, **other)
        found = ways(changed.reads, changed.disk, changed.stored, memory, 3)
        text = str(replace(changed, ways=found))
        assert len(text.splitlines()) < 40
        return text.splitlines()[-1]

    assert advice(2_000_000).startswith("Memory holds the features")
    assert "they take 540.0 kB and fit" in advice(600_000)
    # 2 s of direct reads less 0.08 s of packed ones, against 0.2 s of reading all features.
    assert "A plan pays from 1 epoch on" in advice(100)
    assert "A plan pays from 3 epochs on" in advice(100, reads=replace(READS, read_bytes=655_360))
    assert advice(100, seed=3, sampling="labor").endswith("--workers 1 --sampling labor --seed 3 -o PLAN")
    assert "a plan does not pay" in advice(100, reads=replace(READS, read_bytes=300_000))
    assert "8 bits" not in advice(100, stored=replace(STORED, bytes=540_000))
    assert "refuses direct reads" in advice(100, disk=None)
    assert advice(100, refusal="too much").startswith("This training would not begin: too much")


@pytest.mark.torch
def test_the_command_line_tells_it(parts, capsys):
    options = ["info", str(parts), "--train", "--fanouts", "4,3", "--batch-size", "32", "--workers", "2"]
    assert main([*options, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["workers"], told["batch_size"], told["fanouts"]) == (2, 32, [4, 3])
    assert main(options) == 0
    text = capsys.readouterr().out
    assert f"{told['reads']['rows']:,} per epoch" in text
    assert f"{told['reads']['remote_rows']:,} of parts of other workers" in text
    assert main([*options, "--memory-limit", "64M"]) == 0
    assert "This training would not begin" in capsys.readouterr().out
    assert main([*options, "--model", "clustergcn"]) == 2
    assert "model: clustergcn trains on sampled graphs" in capsys.readouterr().err


def test_options_of_the_other_kind_are_refused(parts, capsys):
    assert main(["info", str(parts), "--train", "-k", "3"]) == 2
    assert "-k: leave it out, or --train" in capsys.readouterr().err
    assert main(["info", str(parts), "--fanouts", "4,3"]) == 2
    assert "--fanouts: pass --train, too" in capsys.readouterr().err


def test_the_command_line_says_what_to_install(parts):
    call = f"main(['info', {str(parts)!r}, '--train'])"
    code = f"import sys; sys.modules['torch'] = None; from fastpart.cli import main; {call}"
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "pip install 'fastpart[train]'" in ended.stderr


@pytest.mark.torch
def test_the_usual_number_of_workers_fits_the_limit(parts, caplog):
    pytest.importorskip("torch")
    from fastpart.train.costs import costs

    caplog.set_level("INFO", "fastpart")
    given = {"layers": 1, "fanouts": [3], "batch_size": 50, "threads": 3}
    one, three = (costs(parts, workers=workers, **given).needed for workers in (1, 3))
    assert costs(parts, **given, memory_limit=three).workers == 3
    assert not caplog.messages
    fitting = costs(parts, **given, memory_limit=(one + three) // 2)
    assert (fitting.workers < 3, fitting.refusal) == (True, None)
    assert caplog.messages == [f"workers: {fitting.workers}, since 3 need more than the memory limit"]
    assert costs(parts, workers=3, **given, memory_limit=(one + three) // 2).refusal is not None
    assert costs(parts, **given, memory_limit=one // 2).refusal is not None
