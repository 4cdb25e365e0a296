"""A pretended GPU: tensors are labelled with a device, computed on the processor, and refused where CUDA refuses them.

The label is an attribute of the storage, so that views and detached tensors share it. A mode for functions answers for
the device: moves, factories, and what a tensor says of itself. A mode for operators, which sees gradients as well,
refuses operands on two devices and labels what comes out. Threads other than this one have no pretended GPU.
"""

from contextlib import contextmanager

import pytest
import torch
import torch.distributed as dist
from torch.overrides import TorchFunctionMode
from torch.utils import checkpoint
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)

_LABEL = "pretended_device"

_COPIES = {"copy_", "_foreach_copy_"}
"""Operators that take operands on two devices."""

_INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
"""Operators that take indices on the processor for a tensor on a GPU."""

_ON_CPU = {"numpy", "__array__", "pin_memory", "share_memory_", "__dlpack__", "data_ptr"}
"""What only tensors on the processor can do here."""


def _holder(tensor):
    """Return what carries the label. Sparse tensors have no storage of their own."""
    return tensor.untyped_storage() if tensor.layout == torch.strided else tensor


def device_of(tensor):
    """Return the pretended device of a tensor."""
    with torch._C.DisableTorchFunction():
        return getattr(_holder(tensor), _LABEL, CPU)


def _label(tensor, device):
    with torch._C.DisableTorchFunction():
        setattr(_holder(tensor), _LABEL, device)
    return tensor


def _tensors(*nested):
    return [each for each in tree_leaves(nested) if isinstance(each, torch.Tensor)]


class _Operators(TorchDispatchMode):
    """Refuses operands on two devices, and labels results with that of the operands."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given, kwargs = _tensors(args, kwargs), kwargs or {}
        name = function.overloadpacket.__name__
        if name in _COPIES:
            return function(*args, **kwargs)
        places = {device_of(each) for each in given if each.dim() or device_of(each) == GPU}
        if len(places) > 1 and not (
            name in _INDEXED
            and device_of(args[0]) == GPU
            and all(device_of(each) == GPU or not each.dim() for each in _tensors(args[2:3]))
        ):
            operands = ", ".join(f"{device_of(each)} {tuple(each.shape)}" for each in given)
            raise RuntimeError(f"{name}: expected all tensors to be on the same device, but got {operands}")
        result = function(*args, **kwargs)
        if GPU in places:
            for each in _tensors(result):
                _label(each, GPU)
        return result


class _Move(torch.autograd.Function):
    """A copy on another device, whose gradient comes back."""

    @staticmethod
    def forward(ctx, x, device):
        ctx.device = device_of(x)
        return _copied(x, device)

    @staticmethod
    def backward(ctx, gradient):
        return _copied(gradient, ctx.device), None


def _copied(x, device):
    """Return a copy with another label, out of sight of the modes."""
    with torch._C.DisableTorchFunction(), torch.utils._python_dispatch._disable_current_modes():
        return _label(x.detach().clone(), device)


def _moved(x, device):
    device = _named(device)
    return x if device == device_of(x) else _Move.apply(x, device)


def _named(device):
    device = torch.device(device)
    return GPU if device.type == "cuda" else device


class _Functions(TorchFunctionMode):
    """Answers for the device of tensors, moves them, and makes them there."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        if name == "__get__":
            if function == torch.Tensor.device.__get__:
                return device_of(args[0])
            if function == torch.Tensor.is_cuda.__get__:
                return device_of(args[0]) == GPU
        elif name in ("to", "cuda", "cpu") and isinstance(args[0], torch.Tensor):
            return self._to(name, *args, **kwargs)
        elif name in _ON_CPU and isinstance(args[0], torch.Tensor):
            if device_of(args[0]) == GPU:
                raise TypeError(f"{name}: a tensor on {GPU} has to come to the processor first")
            if name == "pin_memory":
                return args[0]
        elif kwargs.get("device") is not None:
            device = _named(kwargs.pop("device"))
            result = function(*args, **kwargs)
            return result if device_of(result) == device else _moved_leaf(result, device)
        return function(*args, **kwargs)

    def _to(self, name, x, *args, non_blocking=False, **kwargs):
        device = {"cuda": GPU, "cpu": CPU}.get(name)
        if name == "to":
            device, left = kwargs.pop("device", None), []
            for each in args:
                if isinstance(each, torch.Tensor):
                    device, left = device_of(each), [*left, each.dtype]
                elif isinstance(each, torch.dtype):
                    left.append(each)
                elif isinstance(each, str | torch.device):
                    device = each
            x = torch.Tensor.to(x, *left, **kwargs) if left or kwargs.get("dtype") is not None else x
        return x if device is None else _moved(x, device)


def _moved_leaf(x, device):
    """Return a new tensor on a device, which may be a leaf that needs gradients."""
    return _copied(x, device).requires_grad_(x.requires_grad)


class _Autocast(torch.autocast):
    """Computes with the numbers of autocast on the processor."""

    def __init__(self, device_type, *args, **kwargs):
        super().__init__("cpu", *args, **kwargs)


class _Generator(torch.Generator):
    """Random numbers of the processor."""

    def __new__(cls, device=None):
        return super().__new__(cls)


class _Stream:
    def __init__(self, *_, **__):
        pass

    def wait_stream(self, other):
        pass


@contextmanager
def _nothing(*_):
    yield


@contextmanager
def pretended_gpu():
    """Let this process have a GPU, and a process group with NCCL if it has one."""
    cuda = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "Stream": _Stream,
        "stream": _nothing,
        "current_stream": lambda *_: _Stream(),
        "is_current_stream_capturing": lambda: False,
        "mem_get_info": lambda *_: (1 << 20, 1 << 20),
        "synchronize": lambda *_: None,
        "manual_seed_all": lambda seed: None,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, instead in cuda.items():
            patch.setattr(torch.cuda, name, instead)
        for name in ("_accelerator_graph_capture_health_check", "_cuda_graph_capture_health_check"):
            patch.setattr(torch.optim.Optimizer, name, lambda optimizer: None, raising=False)
        patch.setattr(torch, "autocast", _Autocast)
        patch.setattr(torch, "Generator", _Generator)
        # What is saved for a gradient is looked at while a function is handled, so its device is that of the processor.
        patch.setitem(checkpoint._allowed_determinism_checks_to_fns, "default", lambda x: (x.shape, x.dtype))
        patch.setattr(torch.Tensor, "record_stream", lambda *_: None)
        patch.setattr(dist, "get_backend_config", lambda *_: "cpu:gloo,cuda:nccl")
        functions, run = _Functions(), torch.autograd._engine_run_backward

        def run_backward(*args, **kwargs):
            with functions:  # a mode is off while it handles a function, as backward is one
                return run(*args, **kwargs)

        patch.setattr(torch.autograd, "_engine_run_backward", run_backward)
        with _Operators(), functions:
            yield
