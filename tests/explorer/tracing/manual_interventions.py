"""Each kind of intervention by hand, with PyTorch's hooks only."""

from collections.abc import Callable

import numpy as np
import torch

from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from model.transformer_lm import TransformerLM
from tests.layouts import output_norm, softcap

IDS = list(range(40, 52))


LAYERS = range(2)


ALL = slice(None)


def run(lm: TransformerLM, text: str = ""):
    return capture(lm, IDS, parse_interventions(text))


def hooked_logits(lm: TransformerLM, hooks: dict[str, Callable]) -> np.ndarray:
    """Return the logits with hooks (x -> new x) at taps; x is the output without its batch axis."""
    handles = [
        lm.taps[name].register_forward_hook(lambda module, inputs, output, hook=hook: hook(output[0].clone())[None])
        for name, hook in hooks.items()
    ]
    try:
        with torch.inference_mode():
            return lm(torch.tensor([IDS]))[0].numpy()
    finally:
        for handle in handles:
            handle.remove()


def assignment_hook(index, value: Callable) -> Callable:
    """Return a hook that assigns `value(x)` at an index of x."""

    def hook(x):
        new = value(x)
        x[index] = new[index] if isinstance(new, torch.Tensor) and new.shape == x.shape else new
        return x

    return hook


def unit(vector: torch.Tensor) -> torch.Tensor:
    return vector / vector.norm()


def add_scaled(x, direction, times):
    return x + times * x.norm(dim=-1, keepdim=True) * unit(direction)


def softmax_without(lm, layer: int, hidden: list[tuple], dropped: tuple | None = None) -> Callable:
    """Return a hook for the pattern with scores of −∞ at hidden (head, queries, key) and one weight of 0."""
    scores = torch.tensor(softcap(run(lm)[f"blocks.{layer}.attn.scores"], lm.config.score_cap))
    visible = torch.ones(len(IDS), len(IDS), dtype=torch.bool).tril().triu(1 - (lm.config.window(layer) or len(IDS)))
    scores = scores.masked_fill(~visible, -torch.inf)
    for head, queries, key in hidden:
        scores[head, queries, key] = -torch.inf
    pattern = scores.softmax(-1)
    if dropped:
        pattern[dropped] = 0
    return lambda computed: pattern


def mask_in_computed_pattern(hidden: list[tuple]) -> Callable:
    """Return a hook that masks weights of the computed pattern and renormalises those of the other keys."""

    def hook(pattern):
        masked = pattern.clone()
        for head, query, key in hidden:
            masked[head, query, key] = 0
        return masked / masked.sum(-1, keepdim=True)

    return hook


def weight(lm, name: str) -> torch.Tensor:
    return lm.state_dict()[f"{name}.weight"]


def neuron_output(lm, layer: int, neuron: int) -> torch.Tensor:
    """Return a neuron's write to the residual stream: its column of W_down, or the norm of that."""
    return residual_update(lm, layer, "ffn", weight(lm, f"blocks.{layer}.ffn.down_proj")[:, [neuron]])[:, 0]


def residual_update(lm, layer: int, sublayer: str, columns: torch.Tensor) -> torch.Tensor:
    """Return the update to the stream from columns (D, N) of a sublayer's output.

    With a post-norm they are normalised, without dividing by the norm's scale.
    """
    norm = output_norm(lm.config, sublayer)
    if norm is None:
        return columns
    centred = columns - columns.mean(0) if lm.config.norm == "layernorm" else columns
    return centred * weight(lm, f"blocks.{layer}.{norm}")[:, None]


# text of an intervention -> lm -> equivalent hooks written by hand
MANUAL_HOOKS = {
    "blocks.1.attn.z.1*mean": lambda lm: {"blocks.1.attn.z": assignment_hook(1, lambda x: x[1].mean(0))},
    "blocks.1.attn.z.1@3-5*mean": lambda lm: {
        "blocks.1.attn.z": assignment_hook((1, slice(3, 6)), lambda x: x[1].mean(0))
    },
    "blocks.0.resid_post.3*mean": lambda lm: {
        "blocks.0.resid_post": assignment_hook((ALL, 3), lambda x: x[:, 3].mean())
    },
    "blocks.0.ffn.hidden*mean": lambda lm: {"blocks.0.ffn.hidden": lambda x: x.mean(0).expand_as(x)},
    "blocks.0.attn.v.1@2.7-*zero": lambda lm: {
        "blocks.0.attn.v": assignment_hook((1, [2, *range(7, 12)]), lambda x: 0.0)
    },
    "blocks.0.resid_post@4*scale*-2": lambda lm: {"blocks.0.resid_post": assignment_hook(4, lambda x: -2 * x)},
    "blocks.1.attn.pattern.2@9*drop*3": lambda lm: {"blocks.1.attn.pattern": assignment_hook((2, 9, 3), lambda x: 0.0)},
    "blocks.1.attn.pattern*drop*0": lambda lm: {"blocks.1.attn.pattern": assignment_hook((ALL, ALL, 0), lambda x: 0.0)},
    "blocks.1.attn.pattern.2@9*mask*3": lambda lm: {"blocks.1.attn.pattern": softmax_without(lm, 1, [(2, 9, 3)])},
    "blocks.0.attn.pattern@1-*mask*0": lambda lm: {
        "blocks.0.attn.pattern": softmax_without(lm, 0, [(ALL, slice(1, None), 0)])
    },
    "blocks.0.attn.pattern.1@5-8*mask*3~blocks.0.attn.pattern@6*mask*2~blocks.0.attn.pattern.0@6*drop*1": lambda lm: {
        "blocks.0.attn.pattern": softmax_without(lm, 0, [(1, slice(5, 9), 3), (ALL, 6, 2)], dropped=(0, 6, 1))
    },
    "blocks.*.attn.pattern@9*drop*4": lambda lm: {
        f"blocks.{layer}.attn.pattern": assignment_hook((ALL, 9, 4), lambda x: 0.0) for layer in LAYERS
    },
    "blocks.*.attn.pattern.2@7-*drop*3": lambda lm: {
        f"blocks.{layer}.attn.pattern": assignment_hook((2, slice(7, None), 3), lambda x: 0.0) for layer in LAYERS
    },
    "blocks.*.attn.pattern@9*mask*4": lambda lm: {
        f"blocks.{layer}.attn.pattern": mask_in_computed_pattern([(ALL, 9, 4)]) for layer in LAYERS
    },
    "blocks.*.attn.pattern@9*mask*4~blocks.1.attn.pattern@9*mask*4~blocks.1.attn.pattern.0@9*mask*3": lambda lm: {
        "blocks.0.attn.pattern": mask_in_computed_pattern([(ALL, 9, 4)]),
        "blocks.1.attn.pattern": mask_in_computed_pattern([(ALL, 9, 4), (0, 9, 3)]),
    },
    "blocks.1.ffn.up.7*clamp*2": lambda lm: {"blocks.1.ffn.up": assignment_hook((ALL, 7), lambda x: 2.0)},
    "blocks.1.ffn.hidden@2*clamp*-0.5": lambda lm: {"blocks.1.ffn.hidden": assignment_hook(2, lambda x: -0.5)},
    "blocks.0.resid_post*add*unembed.17*0.5": lambda lm: {
        "blocks.0.resid_post": lambda x: add_scaled(x, weight(lm, "lm_head")[17], 0.5)
    },
    "blocks.1.resid_post@4-6*add*unembed.17-20*-2": lambda lm: {
        "blocks.1.resid_post": assignment_hook(
            slice(4, 7), lambda x: add_scaled(x, weight(lm, "lm_head")[17] - weight(lm, "lm_head")[20], -2)
        )
    },
    "blocks.0.attn.out@3*add*neuron.1.7*3": lambda lm: {
        "blocks.0.attn.out": assignment_hook(3, lambda x: add_scaled(x, neuron_output(lm, 1, 7), 3))
    },
    "blocks.1.resid_pre@2*remove*neuron.0.5": lambda lm: {
        "blocks.1.resid_pre": assignment_hook(2, lambda x: x - torch.outer(x @ (u := unit(neuron_output(lm, 0, 5))), u))
    },
}
