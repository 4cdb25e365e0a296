"""Dropout by vertex, and gradients that all ranks add up."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fastpart.loading import dropout, sum_gradients  # noqa: E402
from loaded import endless, stored, trained  # noqa: E402
from ranks import run_code  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


def test_dropout_is_a_function_of_its_keys():
    h, ids = torch.ones(50, 40), torch.arange(50)
    one = dropout(h, 0.3, ids, 1, 2)
    torch.testing.assert_close(one.unique(), torch.tensor([0, 1 / 0.7]))
    assert abs(float((one == 0).float().mean()) - 0.3) < 0.03
    assert torch.equal(one[10:20], dropout(h[10:20], 0.3, ids[10:20], 1, 2))
    for other in (dropout(h, 0.3, ids, 2, 1), dropout(h, 0.3, ids + 50, 1, 2)):
        assert 0.3 < float((one == other).float().mean()) < 0.75
    assert torch.equal(dropout(h, 0.0, ids), h)
    assert dropout(torch.ones(3, 2, 4), 0.5, torch.arange(3), 0).shape == (3, 2, 4)
    assert not dropout(h, 1 - 1e-9, ids, 0).isnan().any()


RANK = """
import os, sys, torch, torch.distributed as dist, torch.nn.functional as F
import fastpart as fp
from loaded import Sage
from fastpart.loading import sum_gradients
folder, rank, size = sys.argv[1], int(os.environ["R"]), int(sys.argv[2])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + folder + "/../wire", rank=rank, world_size=size)
model = Sage()
model.unused = torch.nn.Linear(1, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for batch in fp.open_partition(folder).loader(fanouts=[4, 3], batch_size=32, seed=5):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(batch), batch.y, reduction="sum") / batch.global_size
    if batch.batch_size:
        loss.backward()
    sum_gradients(model.parameters())
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    if rank == 0:
        print(float(total))
dist.destroy_process_group()
"""


def test_one_rank_needs_no_sum():
    model = torch.nn.Linear(2, 1)
    model(torch.ones(3, 2)).sum().backward()
    sum_gradients(model.parameters())
    assert model.bias.grad.tolist() == [3.0]


def test_processes_train_as_one(tmp_path):
    partition = stored(tmp_path / "parts", 3)
    loader = partition.loader(fanouts=[4, 3], batch_size=32, seed=5)
    expected = trained(endless([loader]), len(loader))
    ranks = run_code(RANK, tmp_path / "parts", 4, variables=lambda rank: {"R": f"{rank}"}, size=4)
    assert [rank.code for rank in ranks] == [0] * 4, ranks
    np.testing.assert_allclose([float(line) for line in ranks[0].out.split()], expected, rtol=1e-9)
