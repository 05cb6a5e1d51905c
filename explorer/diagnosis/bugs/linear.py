"""Bugs in the linear maps themselves."""

from collections.abc import Iterator

import torch.nn.functional as F

from explorer.diagnosis.bugs.bug import KnownBug
from explorer.translations import N_

MAPS = "attn.q", "attn.k", "attn.v", "attn.out", "ffn.gate_pre", "ffn.up", "ffn.out", "logits"


def multiply_untransposed(x, name, weights):
    """Return x W instead of x Wᵀ, which only square maps allow."""
    return F.linear(x, weights[f"{name}.weight"].T, weights.get(f"{name}.bias"))


def multiply_without_bias(x, name, weights):
    """Return the product with a map's weight, without its bias."""
    return F.linear(x, weights[f"{name}.weight"])


def linear_bugs() -> Iterator[KnownBug]:
    """Yield the known bugs of linear maps."""
    for name, text, product in (
        ("weight_transposed", N_("the weight is transposed: x W, not x Wᵀ"), multiply_untransposed),
        ("bias_left_out", N_("the bias is left out"), multiply_without_bias),
    ):

        def change(formulas, tap, product=product):
            plain_tap = tap.split(".", 2)[-1] if tap.startswith("blocks.") else tap
            return formulas.replace(linears={**formulas.linears, plain_tap: product})

        yield KnownBug(name, text, "", MAPS, change)
