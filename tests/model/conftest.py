"""Fixtures for tests of the model without the explorer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from model.layers.attention import KVCache
from model.transformer_lm import TransformerLM


@pytest.fixture(autouse=True)
def seed_rng():
    """Seed the random numbers of every test.

    torch.manual_seed takes longer than many a test: it records its call stack for a GPU that may be initialised
    later.
    """
    torch.default_generator.manual_seed(0)


@pytest.fixture
def token_ids(tiny_config) -> Tensor:
    """Random token ids (2, 20): two different sequences."""
    return torch.randint(tiny_config.vocab_size, (2, 20), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def make_lm(tiny_config) -> Callable[..., TransformerLM]:
    """`make_lm(**changes)`: a model whose gains, biases and patterns are far from uniform, so that bugs are visible."""

    def make_lm(**changes) -> TransformerLM:
        torch.default_generator.manual_seed(0)
        lm = TransformerLM(replace(tiny_config, **changes)).eval()
        for name, parameter in lm.named_parameters():
            if "norm" in name or name.endswith("bias"):
                parameter.data.uniform_(0.5, 2)
            else:
                parameter.data.mul_(2)
        return lm

    return make_lm


@pytest.fixture
def hook_modules() -> Callable:
    """Context manager that attaches forward hooks to modules by name: `hook_modules(lm, {name: hook})`."""

    @contextmanager
    def attach_hooks(lm: TransformerLM, hooks: dict[str, Callable]) -> Iterator[None]:
        handles = [lm.get_submodule(name).register_forward_hook(hook) for name, hook in hooks.items()]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    return attach_hooks


@pytest.fixture
def record(hook_modules) -> Callable:
    """`record(lm, ids, names)`: outputs of the named modules in one forward pass."""

    def record(lm: TransformerLM, ids: Tensor, names, cache: KVCache | None = None) -> dict[str, Tensor]:
        values: dict[str, Tensor] = {}
        hooks = {name: lambda module, inputs, output, name=name: values.update({name: output}) for name in names}
        with hook_modules(lm, hooks), torch.no_grad():
            lm(ids, cache)
        return values

    return record
