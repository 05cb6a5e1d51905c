"""Patching of another run's values by hand, with PyTorch's hooks only."""

from dataclasses import replace

import numpy as np
import torch

from explorer.interventions import parse_interventions
from explorer.tracing.trace import Trace
from model.transformer_lm import TransformerLM

CLEAN, CORRUPTED = (40, 41, 42, 60, 61, 45, 46, 47), (40, 41, 50, 60, 62, 45, 46, 48)
SHORTER = (40, 42, 60, 61, 45, 46, 47)  # without the token at position 1
ALL = slice(None)


def patched_logits(lm: TransformerLM, token_ids, assignments: dict[str, tuple]) -> np.ndarray:
    """Return the logits with numbers assigned at an index of some taps' values: name -> (index, numbers)."""

    def hook(index, numbers):
        def assign(module, inputs, output):
            output = output.clone()
            output[0][index] = torch.tensor(numbers)
            return output

        return assign

    handles = [lm.taps[name].register_forward_hook(hook(*assignment)) for name, assignment in assignments.items()]
    try:
        with torch.inference_mode():
            return lm(torch.tensor([token_ids]))[0].numpy()
    finally:
        for handle in handles:
            handle.remove()


MANUAL_PATCHES = {  # intervention -> equivalent manual patch: tap, index, and values of the clean run
    "blocks.0.attn.z.1*patch": lambda c: ("blocks.0.attn.z", 1, c["blocks.0.attn.z"][1]),
    "blocks.1.attn.k.2@3*patch": lambda c: ("blocks.1.attn.k", (2, 3), c["blocks.1.attn.k"][2, 3]),
    "blocks.0.attn.v.0@2-*patch": lambda c: ("blocks.0.attn.v", (0, slice(2, None)), c["blocks.0.attn.v"][0, 2:]),
    "blocks.1.attn.q.1*patch": lambda c: ("blocks.1.attn.q", 1, c["blocks.1.attn.q"][1]),
    "blocks.1.attn.pattern.2*patch": lambda c: ("blocks.1.attn.pattern", 2, c["blocks.1.attn.pattern"][2]),
    "blocks.0.attn.pattern@4*patch": lambda c: ("blocks.0.attn.pattern", (ALL, 4), c["blocks.0.attn.pattern"][:, 4]),
    "blocks.1.resid_pre@2.4*patch": lambda c: ("blocks.1.resid_pre", [2, 4], c["blocks.1.resid_pre"][[2, 4]]),
    "blocks.0.ffn.hidden.7*patch": lambda c: ("blocks.0.ffn.hidden", (ALL, 7), c["blocks.0.ffn.hidden"][:, 7]),
    "blocks.0.attn.out*patch": lambda c: ("blocks.0.attn.out", ALL, c["blocks.0.attn.out"]),
    "embed@2*patch": lambda c: ("embed", 2, c["embed"][2]),
    "blocks.0.attn.z.2*patch_mean": lambda c: ("blocks.0.attn.z", 2, c["blocks.0.attn.z"][2].mean(0)),
    "blocks.1.resid_pre@5*patch_mean": lambda c: ("blocks.1.resid_pre", 5, c["blocks.1.resid_pre"].mean(0)),
    "blocks.1.ffn.hidden*patch_mean": lambda c: ("blocks.1.ffn.hidden", ALL, c["blocks.1.ffn.hidden"].mean(0)),
}  # fmt: skip


def make_patches(text: str, donor: Trace):
    return [replace(edit, source=donor) for edit in parse_interventions(text)]
