"""The pretended GPU refuses what CUDA refuses, and nothing else."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import fastpart.train.graphs.kernels  # noqa: E402, F401  # the first sparse tensor of a process warns
from fake_device import CPU, GPU, device_of, pretended_gpu  # noqa: E402


def sparse(device):
    parts = (torch.tensor(each, device=device) for each in ([0, 1], [0], [1.0]))
    return torch.sparse_csr_tensor(*parts, (1, 3), check_invariants=False)


def test_moves_and_factories():
    with pretended_gpu():
        x = torch.ones(3, 2)
        there = x.to("cuda")
        assert (x.device, there.device, there.is_cuda) == (CPU, GPU, True)
        assert there[1:].T.detach().device == GPU
        assert there.to(torch.float64).device == x.to(there).device == GPU
        assert there.cpu().device == CPU
        assert torch.zeros(2, device="cuda").device == torch.empty_like(there).device == GPU
        assert there.new_zeros(2, device="cpu").device == CPU
        module = torch.nn.Linear(2, 2).to("cuda")
        assert {each.device for each in module.parameters()} == {GPU}
        assert module(there).device == GPU
    assert device_of(x) == CPU


def test_gradients_come_back():
    with pretended_gpu():
        x = torch.ones(3, requires_grad=True)
        weight = torch.full((3,), 2.0, device="cuda", requires_grad=True)
        (x.to("cuda") * weight).sum().backward()
        assert (x.grad.device, weight.grad.device) == (CPU, GPU)
        assert x.grad.tolist() == [2.0] * 3
        optimizer = torch.optim.Adam([weight])
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.step()
        assert weight.device == GPU


@pytest.mark.parametrize(
    "mix",
    [
        lambda here, there: here + there,
        lambda here, there: torch.cat([there, here]),
        lambda here, there: here @ there.T,
        lambda here, there: torch.nn.functional.embedding(torch.tensor([0]), there),
        lambda here, there: there.index_select(0, torch.tensor([0])),
        lambda here, there: here[torch.tensor([0], device="cuda")],
        lambda here, there: there.masked_fill(torch.ones(3, 3, dtype=torch.bool), 0.0),
        lambda here, there: there.numpy(),
        lambda here, there: np.asarray(there),
        lambda here, there: there.pin_memory(),
        lambda here, there: there.index_put_((torch.tensor([0, 1]),), here[:2]),
        lambda here, there: sparse("cpu") @ there,
    ],
)
def test_what_cuda_refuses(mix):
    with pretended_gpu():
        here = torch.ones(3, 3)
        with pytest.raises((RuntimeError, TypeError), match=r"same device|has to come to the processor"):
            mix(here, here.to("cuda"))


def test_what_cuda_takes():
    with pretended_gpu():
        there = torch.ones(3, 3, device="cuda")
        assert (there * torch.tensor(2.0)).device == GPU
        assert there[torch.tensor([0, 2])].device == GPU
        there[torch.tensor([0, 2])] = torch.zeros(2, 3, device="cuda")
        there.copy_(torch.ones(3, 3))
        assert torch.ones(3, 3).copy_(there).device == CPU
        assert there.sum().item() == 9
        assert (sparse("cuda") @ there).device == GPU
