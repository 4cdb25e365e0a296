"""Learned rows of types without features: the same losses for any parts, resumed to the bit, and written by id."""

from itertools import chain

import numpy as np
import pytest

import fastpart as fp

torch = pytest.importorskip("torch")

from fastpart.partitions.seeds import TypeVertices  # noqa: E402
from fastpart.train.data.learned_rows import LearnedRows, learned_files, written  # noqa: E402
from ranks import run_code  # noqa: E402
from typed_training import typed_parts  # noqa: E402

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(180)]

TRAIN = """
import os, sys, torch, numpy as np, torch.distributed as dist, torch.nn.functional as F
from pathlib import Path
import fastpart as fp
from fastpart.loading import sum_gradients
from fastpart.train.options import Options
from fastpart.train.graphs.rows import layers_of
from fastpart.train.data.learned_rows import LearnedRows
from fastpart.train.models import build
from fastpart.train.models.scores import TypedTask

rank, size = int(os.environ["R"]), int(sys.argv[3])
if size > 1:
    where = {"init_method": "file://" + sys.argv[4], "rank": rank, "world_size": size}
    dist.init_process_group("gloo", **where)
stored = fp.open_partition(sys.argv[1])
loader = stored.loader("train", fanouts=[3, 3], batch_size=15, seed=1)
task = TypedTask(5, 3, False, types=tuple(loader.types), edge_types=tuple(loader.edge_types),
                 widths={"author": 0, "field": 2, "paper": 5}, edge_widths={}, returned=("paper",))
torch.manual_seed(0)
network = build(task, Options(model="hgt", hidden=4, heads=2)).double()
learned = LearnedRows(stored, task.learned, np.arange(size), 4, 7, 0.05, Path(sys.argv[2]), dtype=np.float64)
optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
for epoch in range(3):
    loader.set_epoch(epoch)
    for step, batch in enumerate(loader):
        torch.manual_seed(1000 * epoch + step)
        optimizer.zero_grad()
        x = {name: rows.double() for name, rows in batch.x_dict.items()} | learned.inputs(batch.rows_dict)
        loss = torch.zeros((), dtype=torch.float64)
        if batch.batch_size:
            logits = network(layers_of(batch), x)
            loss = F.cross_entropy(logits, batch.y, reduction="sum") / batch.global_size
            loss.backward()
            loss = loss.detach()
        sum_gradients(network.parameters())
        learned.step()
        optimizer.step()
        if size > 1:
            dist.all_reduce(loss)
        print(repr(loss.item()))
learned.follow(0.0)
learned.write()
sys.stdout.flush()
if size > 1:
    dist.barrier()
os._exit(0)
"""


def test_losses_are_the_same_for_any_number_of_parts(tmp_path):
    losses, rows = {}, {}
    for k in (1, 2, 4):
        (tmp_path / f"{k}").mkdir()
        saved_in(tmp_path / f"{k}", k)
        words = (TRAIN, tmp_path / f"{k}" / "parts", tmp_path / f"out-{k}", k, tmp_path / f"wire-{k}")
        done = run_code(*words, variables=lambda rank: {"R": f"{rank}"}, size=k)
        assert not any(rank.code for rank in done), done
        losses[k] = [float(line) for line in done[0].out.split()]
        rows[k] = np.array(written(tmp_path / f"out-{k}", ["author"])["author"])
    assert len(losses[1]) == 12
    assert losses[1][-1] < losses[1][0]
    for k in (2, 4):
        np.testing.assert_allclose(losses[k], losses[1], rtol=1e-9)
        np.testing.assert_allclose(rows[k], rows[1], rtol=1e-7, atol=1e-9)


def saved_in(folder, k):
    """Save and open parts of a graph whose authors have no features."""
    stored, *_ = typed_parts(folder, k, widths={"field": 2, "paper": 5}, scale=1)
    return stored


def learned_of(stored, folder, **options):
    owners = np.zeros(stored.k, np.int64)
    given = {"width": 4, "seed": 0, "lr": 0.1, **options}
    return LearnedRows(stored, ["author", "field"], owners, folder=folder, **given)


def test_rows_of_a_type_have_the_ids_of_its_vertices(tmp_path):
    stored = saved_in(tmp_path, 3)
    for name in ("author", "field", "paper"):
        vertices = TypeVertices(stored, name)
        ids = vertices.ids_of(np.arange(vertices.starts[-1], dtype=np.uint32))
        assert ids.tolist() == list(chain(*(part.of_type(name).inner for part in stored.parts)))


def test_rows_of_several_types_lie_type_after_type_in_each_part(tmp_path):
    stored = saved_in(tmp_path, 3)
    both = TypeVertices(stored, "author", "field")
    parts = [[part.of_type(name).inner for name in ("author", "field")] for part in stored.parts]
    assert both.ids_of(np.arange(both.starts[-1], dtype=np.uint32)).tolist() == list(chain(*chain(*parts)))
    for number, name in enumerate(("author", "field")):
        alone = TypeVertices(stored, name)
        every = np.arange(alone.starts[-1], dtype=np.uint32)
        rows = both.rows_of(name, every)
        assert rows.dtype == np.uint32
        assert np.array_equal(both.ids_of(rows), alone.ids_of(every))
        for index, of_part in enumerate(parts):
            of_type = np.concatenate(of_part)[both.within(name, index)]
            assert np.array_equal(of_type, of_part[number])


def test_rows_of_an_earlier_version_are_told(tmp_path):
    learned = learned_of(saved_in(tmp_path, 2), tmp_path / "run")
    with pytest.raises(
        fp.errors.ParameterError, match="resume: the learned rows were saved by an earlier version"
    ):
        learned.load({"best": 0.5, "types": {"author": {"steps": 1, "slot": 0}}})


def steps(learned, count, first=0):
    """Let rows follow what depends on their values, and return the last of them."""
    rows = {"author": np.array([3, 0, 3, 17, 39], np.uint32), "field": np.array([], np.uint32)}
    for step in range(first, first + count):
        x = learned.inputs({**rows, "paper": rows["author"]})
        assert x.keys() == {"author", "field"}
        assert x["field"].shape == (0, 4)
        (x["author"] * torch.arange(20.0).sub(7 + step).view(5, 4)).square().sum().backward()
        learned.step()
    return x["author"].detach()


def test_only_used_rows_change_and_a_resume_is_as_if_never_stopped(tmp_path):
    stored = saved_in(tmp_path, 2)
    whole, first = learned_of(stored, tmp_path / "whole"), learned_of(stored, tmp_path / "run")
    before = [whole.of_part("author", part).copy() for part in range(2)]
    expected = steps(whole, 5)
    torch.testing.assert_close(expected[0], expected[2], rtol=0, atol=0)
    changed = np.concatenate([whole.of_part("author", part) for part in range(2)]) != np.concatenate(before)
    assert np.flatnonzero(changed.any(1)).tolist() == [0, 3, 17, 39]
    steps(first, 3)
    first.follow(0.5)
    first.save()
    state = first.state()
    steps(first, 1)  # is lost
    second = learned_of(stored, tmp_path / "run")
    second.load(state)
    assert torch.equal(steps(second, 2, 3), expected)
    second.follow(0.4)
    second.put_best()
    best = learned_of(stored, tmp_path / "other")
    steps(best, 3)
    second.write()
    found = written(tmp_path / "run", ["author", "field"])
    for name, rows in found.items():
        for index, part in enumerate(stored.parts):
            of = part.of_type(name)
            assert np.array_equal(rows[of.inner - of.type.first], best.of_part(name, index))
    files = {str(file.relative_to(tmp_path / "run")) for file in (tmp_path / "run").rglob("*.npy")}
    assert files <= set(learned_files(["author", "field"], 2))


def test_damaged_rows_are_told(tmp_path):
    stored = saved_in(tmp_path, 2)
    learned = learned_of(stored, tmp_path / "run")
    learned.save()
    file = tmp_path / "run" / "embeddings/first/part-00001.npy"
    np.save(file, np.zeros((4, 1, 4), np.float32))
    with pytest.raises(fp.errors.GraphFormatError, match=r"part-00001\.npy"):
        learned_of(stored, tmp_path / "run").load(learned.state())
