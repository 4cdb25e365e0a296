"""The memory of a training: stated before it starts, refused where the limit does not hold it, and kept."""

import numpy as np
import pytest

import fastpart as fp
from trainable import planted

torch = pytest.importorskip("torch")

from armada import settings_of  # noqa: E402
from fastpart.core.options import RunOptions  # noqa: E402
from fastpart.train import memory  # noqa: E402
from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.inference import hops, inference  # noqa: E402
from fastpart.train.inference.inference import Inference  # noqa: E402
from fastpart.train.methods.armada import driver  # noqa: E402
from fastpart.train.models import build  # noqa: E402
from fastpart.train.options import Options  # noqa: E402
from fastpart.train.runs import predicting  # noqa: E402

QUICK = {"hidden": 8, "threads": 1, "epochs": 2}

FLOOR = sum(need.total for need in memory.processes(1, copies=False))

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(180)]


class Whole(torch.nn.Module):
    """A model without layers of its own."""

    def __init__(self, task, options):
        super().__init__()
        self.linear = torch.nn.Linear(task.features, task.classes)

    def forward(self, graphs, x):
        for graph in graphs:
            x = graph.targets(x) + graph.mean(x)
        return self.linear(x)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=3)


@pytest.mark.parametrize("method", ["full", "sampled", "bytegnn", "armada", "sdt", "sancus"])
def test_a_training_that_the_limit_does_not_hold_is_refused_before_it_starts(parts, tmp_path, method):
    limit, names = ("1K", "the whole graph") if method == "full" else ("300M", "torch and its modules")
    with pytest.raises(
        fp.errors.MemoryBudgetError, match=rf"needs .*[kMG]B of memory, but the limit is .*{names}.*or use "
    ):
        getattr(fp.train, method)(parts, out=tmp_path / "run", memory_limit=limit, **QUICK)
    assert not (tmp_path / "run" / "checkpoint.pt").exists()


@pytest.mark.parametrize(("workers", "limit", "copies"), [(1, 400, False), (1, 500, True), (2, 400, True)])
def test_one_worker_is_a_new_interpreter_where_a_server_beside_it_does_not_fit(workers, limit, copies):
    assert memory.may_copy(workers, [], RunOptions(memory_limit=limit << 20)) == copies


def test_one_worker_trains_where_a_server_beside_it_does_not_fit(parts):
    given = {**QUICK, "workers": 1}
    small = fp.train.sampled(parts, memory_limit="440M", **given)
    assert small.history["loss"].to_list() == fp.train.sampled(parts, **given).history["loss"].to_list()


def test_the_memory_limit_of_a_block_is_that_of_trainings(parts):
    with (
        fp.config(memory_limit="300M"),
        pytest.raises(fp.errors.MemoryBudgetError, match="torch and its modules"),
    ):
        fp.train.sampled(parts, **QUICK)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"batch_size": None, "fanouts": [-1, -1]}, "two batches"),
        ({"hidden": 1 << 20}, "weights and Adam"),
        ({"model": "gat", "hidden": 1 << 15, "fanouts": [-1, -1]}, "activations"),
    ],
)
def test_a_refusal_names_what_needs_the_memory(parts, given, named):
    with pytest.raises(fp.errors.MemoryBudgetError, match=named):
        fp.train.sampled(parts, workers=1, memory_limit=FLOOR + (1 << 19), **QUICK | given)


def test_predictions_state_what_their_result_takes(parts):
    trained = fp.train.full(parts, **QUICK)
    options, (n, classes) = trained.options, (600, trained.task.classes)
    assert classes < options.hidden
    least = sum(need.size for need in memory.evaluation(Dataset(parts), options, 1))
    for what, numbers in {
        "logits": classes,
        "probabilities": classes,
        "classes": 2,
        "embeddings": options.hidden,
    }.items():
        enough = least + 4 * numbers * n
        at_once = trained.predict(parts, what=what)
        assert (trained.predict(parts, what=what, memory_limit=enough) == at_once).all()
        assert 4 * numbers * n == at_once.nbytes
        with pytest.raises(
            fp.errors.MemoryBudgetError, match=r"^predicting needs .* for the result.*use out=, a file$"
        ):
            trained.predict(parts, what=what, memory_limit=enough - 1)
    frame = trained.to_frame(parts, memory_limit=least)  # its logits are in a file
    assert frame.equals(trained.to_frame(parts))


def test_a_model_without_layers_is_computed_in_blocks_that_fit(parts, monkeypatch):
    trained = fp.train.full(parts, model=Whole, **QUICK)
    dataset, options = Dataset(parts), trained.options
    at_once = trained.predict(parts, what="logits")
    stated = next(need for need in memory.evaluation(dataset, options, 1) if "with 2 hops" in need.what)
    largest = max(part.num_inner for part in dataset.partition.parts)
    assert stated.size >= 4 * dataset.task.features * largest
    monkeypatch.setattr(memory, "BLOCK_BYTES", stated.size * 4 // 5)  # a vertex reaches half of this graph
    monkeypatch.setattr(predicting, "left_by", lambda *_: 0)
    seen, read = [], Inference._read

    def watched(self, hops, name, rows, widths, blocks, *where):
        seen.extend(len(vertices) for _, vertices in blocks)
        return read(self, hops, name, rows, widths, blocks, *where)

    monkeypatch.setattr(Inference, "_read", watched)
    np.testing.assert_allclose(trained.predict(parts, what="logits"), at_once, rtol=1e-5, atol=1e-6)
    assert len(seen) > 3
    assert sum(seen) == 600
    monkeypatch.setattr(memory, "BLOCK_BYTES", 100)
    with pytest.raises(
        fp.errors.MemoryBudgetError,
        match=r"^model: vertex \d+ reaches [\d,]+ vertices over [\d,]+ edges in 2",
    ):
        trained.predict(parts)


def test_blocks_do_not_change_what_workers_score(parts, monkeypatch):
    """In this process: workers are copies of one that has the modules as they are."""
    dataset, options = Dataset(parts), Options(model=Whole, hidden=8)
    network, own = build(dataset.task, options), list(range(dataset.partition.k))
    whole = Inference(dataset, own, parts, 2).scores(network)
    fits = memory.fitting(dataset, options, 0)
    stated = next(need.size for need in memory.evaluation(dataset, options, 1) if "hops" in need.what)
    monkeypatch.setattr(memory, "BLOCK_BYTES", stated * 4 // 5)
    blocks = Inference(dataset, own, parts, 2, fits=memory.fitting(dataset, options, 0))
    assert blocks.scores(network) == pytest.approx(whole)
    assert blocks.scores(network) == pytest.approx(whole)  # by the blocks of the last time
    assert len(blocks._known_blocks[0][1]) > 1
    assert fits([10**6], [])  # a megabyte of ids is less than a block may take


def test_the_limit_changes_how_far_batches_are_ahead_but_not_the_losses(parts):
    given = {**QUICK, "batch_size": 50, "fanouts": [4, 3], "workers": 1, "ahead": 8}
    wide = fp.train.sampled(parts, **given)
    tight = fp.train.sampled(parts, memory_limit=FLOOR + (1 << 20), **given)
    assert tight.history["loss"].to_list() == wide.history["loss"].to_list()
    assert tight.history["val_f1"].to_list() == wide.history["val_f1"].to_list()


@pytest.mark.parametrize("scheduled", [False, True])
def test_batches_without_room_are_made_one_at_a_time_and_are_the_same(parts, scheduled):
    def rows(room):
        loader = fp.open_partition(parts).loader(
            "train", fanouts=[4, 3], batch_size=20, ahead=4, threads=2, scheduled=scheduled
        )
        loader.limit(room)
        return [batch.n_id.tolist() for batch in loader]

    assert rows(0) == rows(1 << 30)


def test_pieces_of_layers_are_small_and_change_nothing(parts, tmp_path, monkeypatch):
    dataset, options = Dataset(parts), Options(hidden=16)
    network = build(dataset.task, options)

    def outputs():
        found = inference.Inference(dataset, [0, 1, 2], tmp_path, 2)
        blocks = [(part, block, rows) for part, block, rows in found.outputs(network)]
        return len(blocks), np.concatenate([rows.numpy() for _, _, rows in blocks])

    few, whole = outputs()
    monkeypatch.setattr(hops, "PIECE_BYTES", 4 * dataset.task.features * 200)
    many, pieces = outputs()
    assert few == 3
    assert many > 10
    np.testing.assert_allclose(pieces, whole, rtol=1e-5, atol=1e-6)


def test_what_is_stated_bounds_a_batch():
    size = memory.BatchSize.sampled(100, [10, -1], vertices=5000, edges=20_000)
    assert size.nodes == (100, 1000, 5000)
    assert size.edges == (1000, 20_000)
    assert size.levels(2) == [(1100, 6100, 21_000), (100, 1100, 1000)]


def test_float64_needs_twice_the_memory(parts):
    task = Dataset(parts).task
    single, double = (Options(hidden=64, precision=precision) for precision in ("float32", "float64"))
    assert memory.weights(double, task).size == 2 * memory.weights(single, task).size
    levels = [(100, 200, 1000), (50, 100, 500)]
    assert memory.activations(double, task, levels) == 2 * memory.activations(single, task, levels)
    rows = [memory.graph_bytes(options, 1000, 0, 10) for options in (single, double)]
    assert rows[1] - rows[0] == 1000 * 10 * 8  # beside those of the file, while they are copied


def test_rows_with_8_bits_are_counted_as_they_are_where_they_move_and_decoded_in_batches(parts, tmp_path):
    settings = settings_of(parts, batch_size=50, hold=1, cache=0.5)
    stated = {}
    for name, folder in {"plain": parts, "coded": planted(tmp_path, k=3, feature_dtype="int8")}.items():
        dataset = Dataset(folder)
        workers, others = driver.needs(dataset, Options(hidden=8, fanouts=(4, 3)), settings)
        stated[name] = {need.what: need.size for need in [*workers, *others]}
    width, n = 8, 600
    fewer = 4 * width - (width + 8)  # bytes of a row
    step = memory.BatchSize.sampled(50, (4, 3), n, 8000).rows
    found = {name: stated["plain"][name] - size for name, size in stated["coded"].items()}
    assert found["cached rows"] == n // 3 // 2 * fewer
    assert found["two batches that are made"] == 2 * (step * fewer * 5 // 4)
    assert found["steps in /dev/shm"] == 3 * (step * fewer * 5 // 4)
    assert found["parts in memory"] in {part.num_inner * fewer for part in fp.open_partition(parts).parts}
    assert found["two batches"] == -2 * (step * (width + 8) * 5 // 4)  # coded rows beside decoded ones
    assert found["activations"] == found["weights and Adam"] == 0


def test_resident_rows_with_8_bits_are_in_a_batch_twice(tmp_path):
    coded = Dataset(planted(tmp_path, k=3, feature_dtype="int8"))
    assert memory.row_bytes(coded) == 4 * 8
    assert memory.row_bytes(coded, moved=True) == 4 * 8 + 8 + 8
    given = {**QUICK, "epochs": 1, "workers": 1}
    losses = [
        fp.train.sampled(coded.path, resident=size, **given).history["loss"].to_list()
        for size in (None, "1M")
    ]
    assert losses[0] == losses[1]
