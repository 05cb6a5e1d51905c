"""Patching by hand: one run at a time, with PyTorch's hooks only."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack

import torch
from torch import Tensor

CLEAN, CORRUPTED = (40, 41, 42, 43, 44, 45, 46), (40, 41, 90, 43, 44, 91, 46)
ANSWER, WRONG = 33, 34
CONTRAST = {"clean_ids": CLEAN, "corrupted_ids": CORRUPTED, "answer": ANSWER, "wrong": WRONG}


def values(lm, token_ids, *names: str) -> dict[str, Tensor]:
    """Return the outputs (1, …) of the named modules in one run."""
    outputs = {}
    with ExitStack() as stack, torch.no_grad():
        for name in names:
            hook = lm.get_submodule(name).register_forward_hook(lambda m, i, o, name=name: outputs.update({name: o}))
            stack.callback(hook.remove)
        lm(torch.tensor([token_ids]))
    return outputs


def measure_metric(
    lm, token_ids, changes: Mapping[str, Callable[[Tensor], Tensor]] = {}, metric="logit_difference"
) -> float:
    """Return the metric at the last position of a run with values changed at some taps."""
    with ExitStack() as stack, torch.no_grad():
        for name, change in changes.items():
            hook = lm.get_submodule(name).register_forward_hook(lambda m, i, o, change=change: change(o))
            stack.callback(hook.remove)
        logits = lm(torch.tensor([token_ids]))[0, -1].double()
    return {
        "logit_difference": float(logits[ANSWER] - logits[WRONG]),
        "log_probability": float(logits.log_softmax(0)[ANSWER]),
        "probability": float(logits.softmax(0)[ANSWER]),
    }[metric]


def patch_hook(source_value: Tensor, index: int) -> Callable[[Tensor], Tensor]:
    """Return a hook that patches one index of the second axis from the source's value."""

    def change(value: Tensor) -> Tensor:
        value = value.clone()
        value[0, index] = source_value[0, index]
        return value

    return change
