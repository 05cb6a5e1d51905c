"""Patching by hand: a run at a time, with PyTorch's own hooks and nothing of the explorer's."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack

import torch
from torch import Tensor

CLEAN, CORRUPTED = (40, 41, 42, 43, 44, 45, 46), (40, 41, 90, 43, 44, 91, 46)
ANSWER, WRONG = 33, 34
CONTRAST = {"clean_ids": CLEAN, "corrupted_ids": CORRUPTED, "answer": ANSWER, "wrong": WRONG}


def values(lm, token_ids, *names: str) -> dict[str, Tensor]:
    """(1, …) of each tap of a run."""
    found = {}
    with ExitStack() as stack, torch.no_grad():
        for name in names:
            hook = lm.get_submodule(name).register_forward_hook(lambda m, i, o, name=name: found.update({name: o}))
            stack.callback(hook.remove)
        lm(torch.tensor([token_ids]))
    return found


def measured(lm, token_ids, changes: Mapping[str, Callable[[Tensor], Tensor]] = {}, metric="logit_difference") -> float:
    """The metric at the last position of a run in which values at taps are changed."""
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


def put(donated: Tensor, place: int) -> Callable[[Tensor], Tensor]:
    """The change that puts one place of the second axis from a donor."""

    def change(value: Tensor) -> Tensor:
        value = value.clone()
        value[0, place] = donated[0, place]
        return value

    return change
