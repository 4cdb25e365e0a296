"""Features of other ranks by messages: the batches are those from files, for any parts, ranks and windows."""

import shutil

import numpy as np
import pytest

import fastpart as fp

torch = pytest.importorskip("torch")

from loaded import attributed  # noqa: E402
from ranks import run_code  # noqa: E402
from typed_training import typed_parts  # noqa: E402

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(180)]

START = """
import os, sys, torch, torch.distributed as dist
from datetime import timedelta
import fastpart as fp

def end(code=0):
    try:
        dist.barrier()  # the end of a rank closes connections that others may still read from
    except RuntimeError:
        pass
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # what gloo does at the end of a process is not tested

def told(*error):
    sys.__excepthook__(*error)
    end(1)

rank, size = int(os.environ["R"]), int(sys.argv[2])
folder = sys.argv[1].format(rank)
where = {"init_method": "file://" + sys.argv[3], "rank": rank, "world_size": size}
dist.init_process_group("gloo", timeout=timedelta(seconds=120), **where)
sys.excepthook = told  # in place of that of torch
stored = fp.open_partition(folder)
"""

SAME = """
for ahead in (0, 1, 3):
    given = {"fanouts": [4, 3], "batch_size": 32, "seed": 5, "ahead": ahead}
    maps = stored.loader(remote="maps", **given)
    messages = stored.loader(remote="messages", **given)
    for epoch in range(2):
        for one, other in zip(maps, messages, strict=True):
            assert one.x.dtype == other.x.dtype and torch.equal(one.x, other.x)
            assert torch.equal(one.n_id, other.n_id)
            assert one.edge_attr.dtype == other.edge_attr.dtype
            assert torch.equal(one.edge_attr, other.edge_attr)
    of_maps, of_messages = maps.read_counts(), messages.read_counts()
    assert of_maps["remote_rows"] == of_messages["remote_rows"]
    assert of_maps["remote_edge_rows"] == of_messages["remote_edge_rows"]
    assert of_maps["remote_bytes"] <= of_messages["remote_bytes"] or size == 1
    print(of_messages["remote_rows"])
    for batch in messages:  # all ranks leave early
        break
    del batch
    assert len(list(messages)) == len(messages)
    messages.close()
"""


def ranks(tmp_path, code, folder, size):
    """Run the code in so many processes, which meet. Return output, errors and exit code of each."""
    (tmp_path / "wire").unlink(missing_ok=True)
    words = (START + code + "\nend()", folder, size, tmp_path / "wire")
    return run_code(*words, variables=lambda rank: {"R": f"{rank}"}, size=size)


@pytest.mark.parametrize(("assignment", "k", "size"), [(4, 4, 3), (3, 3, 2), ("empty", 4, 4), (2, 2, 3)])
def test_batches_by_messages_are_those_of_files(tmp_path, assignment, k, size):
    _, rows = attributed()
    vertices = np.arange(300)
    parts = np.where(vertices < 150, 0, 2) if assignment == "empty" else vertices * 7 % k
    if assignment == "empty":
        rows["splits"] = {"train": np.arange(100)}  # seeds in part 0 only
    rows["features"] = rows["features"].astype(np.float16)
    fp.VertexPartition(parts, k).save(tmp_path / "parts", **rows)
    done = ranks(tmp_path, SAME, tmp_path / "parts", size)
    assert [code for *_, code in done] == [0] * size, done
    of_windows = np.sum([[int(line) for line in out.split()] for out, *_ in done], axis=0)
    assert of_windows[0] == of_windows[1] > of_windows[2] > 0  # rows of several batches are sent once


EARLY = """
import gc, random, time
gc.disable()  # what a thread leaves behind must not wait for a collection
random.seed(rank)
for ahead in (0, 1):
    messages = stored.loader(remote="messages", fanouts=[4, 3], batch_size=32, ahead=ahead)
    for _ in range(15):
        for batch in messages:
            time.sleep(random.choice([0, 0.003, 0.01, 0.03]))  # other ranks are in the middle of a round
            break
        del batch
        assert len(list(messages)) == len(messages)
    messages.close()
"""


def test_epochs_left_in_the_middle_of_a_round_keep_no_rank_waiting(tmp_path):
    _, rows = attributed()
    fp.VertexPartition(np.arange(300) * 7 % 4, 4).save(tmp_path / "parts", **rows)
    done = ranks(tmp_path, EARLY, tmp_path / "parts", 3)
    assert [code for *_, code in done] == [0] * 3, done


OVER_TYPES = """
fetched = []
for ahead, cache in ((0, None), (2, None), (2, 0.2), (2, "1K"), (2, 1.0)):
    given = {"fanouts": [4, 3], "batch_size": 20, "seed": 5, "ahead": ahead, "cache": cache}
    maps = stored.loader(remote="maps", **given)
    messages = stored.loader(remote="messages", **given)
    for one, other in zip(maps, messages, strict=True):
        assert set(one.edge_attr_dict) == {("paper", "cites", "paper"), ("author", "writes", "paper")} | {
            ("paper", "rev_writes", "author")
        }
        for name in ("x_dict", "edge_attr_dict"):
            for key, rows in getattr(one, name).items():
                assert rows.dtype == getattr(other, name)[key].dtype
                assert torch.equal(rows, getattr(other, name)[key])
    of_maps, of_messages = maps.read_counts(), messages.read_counts()
    assert of_maps["remote_rows"] == of_messages["remote_rows"] > 0
    assert of_maps["edge_rows"] == of_messages["edge_rows"] > 0
    of_edges = {name.replace("edge_", ""): count for name, count in of_messages.items() if "edge" in name}
    assert (of_edges["cached_rows"] > 0) == (cache is not None)
    fetched.append(of_edges)
    messages.close()
_, without, some, of_size, more = fetched
for held in (some, of_size, more):
    assert held["remote_rows"] + held["cached_rows"] == without["remote_rows"]
    assert held["remote_bytes"] < without["remote_bytes"]
assert more["remote_rows"] < some["remote_rows"]
"""


def test_rows_over_types_come_by_messages_too(tmp_path):
    sizes, rng = {"cites": 600, "writes": 480}, np.random.default_rng(0)
    rows = {name: rng.standard_normal((size, 2)).astype(np.float32) for name, size in sizes.items()}
    typed_parts(tmp_path, 4, edge_features=rows)
    done = ranks(tmp_path, OVER_TYPES + EARLY, tmp_path / "parts", 3)
    assert [code for *_, code in done] == [0] * 3, done


def machines(tmp_path, size=2):
    """Give each rank a directory with the features of its own parts only."""
    _, rows = attributed()
    fp.VertexPartition(np.arange(300) % 4, 4).save(tmp_path / "parts0", **rows)
    for rank in range(1, size):
        shutil.copytree(tmp_path / "parts0", tmp_path / f"parts{rank}")
    shutil.copytree(tmp_path / "parts0", tmp_path / "whole")
    for rank in range(size):
        for part in range(4):
            if part * size // 4 != rank:
                for name in ("features", "edge_features"):
                    (tmp_path / f"parts{rank}" / f"part-{part:05d}" / f"{name}.npy").unlink()
    return tmp_path / "parts{}"


AUTO = """
whole = fp.open_partition(folder[: folder.rindex("/")] + "/whole")
remote = []
for cache in (None, 0.5):
    given = {"fanouts": [4, 3], "cache": cache}
    messages, maps = stored.loader(**given), whole.loader(remote="maps", **given)
    for one, other in zip(messages, maps, strict=True):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.edge_attr, other.edge_attr)
    counts, of_maps = messages.read_counts(), maps.read_counts()
    assert counts["cached_edge_rows"] == of_maps["cached_edge_rows"]
    remote.append(counts["remote_edge_rows"] + counts["cached_edge_rows"])
    assert (counts["cached_edge_rows"] > 0) == (cache is not None)
    messages.close()
assert remote[0] == remote[1] > 0
"""


def test_features_that_are_elsewhere_come_by_messages(tmp_path):
    done = ranks(tmp_path, AUTO, machines(tmp_path), 2)
    assert [code for *_, code in done] == [0, 0], done


def test_missing_features_of_own_parts_are_named(tmp_path):
    folder = machines(tmp_path)
    (tmp_path / "parts1" / "part-00003" / "features.npy").unlink()
    for _, errors, code in ranks(tmp_path, "stored.loader(fanouts=[2])", folder, 2):
        assert code == 1
        assert "features.npy of part 3 is not on the machine of rank 1" in errors


def test_missing_features_of_own_edges_are_named(tmp_path):
    folder = machines(tmp_path)
    (tmp_path / "parts1" / "part-00003" / "edge_features.npy").unlink()
    for _, errors, code in ranks(tmp_path, "stored.loader(fanouts=[2])", folder, 2):
        assert code == 1
        assert "edge_features.npy of part 3 is not on the machine of rank 1" in errors


def test_the_rank_with_another_partition_is_named(tmp_path):
    folder = machines(tmp_path, 3)
    _, rows = attributed()
    shutil.rmtree(tmp_path / "parts1")
    fp.VertexPartition(np.arange(300) % 5, 5).save(tmp_path / "parts1", **rows)
    for _, errors, code in ranks(tmp_path, "stored.loader(fanouts=[2])", folder, 3):
        assert code == 1
        assert "rank 1 has another partition than the other ranks: k is 5 instead of 4" in errors


def test_the_rank_with_other_features_is_named(tmp_path):
    folder = machines(tmp_path, 3)
    _, rows = attributed()
    rows["features"] = rows["features"] + 1
    fp.VertexPartition(np.arange(300) % 4, 4).save(tmp_path / "parts1", overwrite=True, **rows)
    for _, errors, code in ranks(tmp_path, "stored.loader(fanouts=[2])", folder, 3):
        assert code == 1
        assert (
            "rank 1 has another partition than the other ranks: its features differ. Copy the same" in errors
        )


LEAVES = """
for batch in stored.loader(fanouts=[2], batch_size=8, remote="messages", ahead=1, timeout=20):
    if rank == 1 and batch.step == 3:
        break
"""


def test_a_rank_that_leaves_is_named(tmp_path):
    (_, errors, code), _ = ranks(tmp_path, LEAVES, machines(tmp_path), 2)
    assert code == 1
    assert "rank 1 has ended its epoch early" in errors


SLOWER = """
import time
loader = stored.loader(fanouts=[2], batch_size=8, remote="messages", ahead=1, timeout=20)
for batch in loader:
    if batch.step == 1:
        time.sleep(1 + 3 * rank)  # until the next batches are made, and longer than the end of a loop waits
        break
del batch
assert len(list(loader)) == len(loader) > 4
loader.close()
"""


def test_a_loop_after_one_that_was_left_waits_for_slower_ranks(tmp_path):
    done = ranks(tmp_path, SLOWER, machines(tmp_path), 2)
    assert [code for *_, code in done] == [0, 0], done


def test_messages_need_processes(tmp_path):
    _, rows = attributed()
    fp.VertexPartition(np.arange(300) % 2, 2).save(tmp_path / "parts", **rows)
    with pytest.raises(fp.errors.ParameterError, match=r"remote: .* needs the ranks of torch.distributed"):
        fp.open_partition(tmp_path / "parts").loader(fanouts=[2], remote="messages")


def test_a_thread_that_cannot_leave_ends_the_loop_with_its_cause():
    from fastpart.loading.ahead import Ahead

    def leave():
        raise ConnectionError("gone")

    items = Ahead(iter([1]), leave)
    assert next(items) == 1
    with pytest.raises(ConnectionError, match="gone"):
        next(items)
