"""Slips in the linear maps themselves."""

from collections.abc import Iterator

import torch.nn.functional as F

from explorer.language import N_
from explorer.own_module.slips.slip import Slip

MAPS = "attn.q", "attn.k", "attn.v", "attn.out", "ffn.gate_pre", "ffn.up", "ffn.out", "logits"


def transposed(x, name, weights):
    """x W in the place of x Wᵀ, which only square maps have."""
    return F.linear(x, weights[f"{name}.weight"].T, weights.get(f"{name}.bias"))


def without_bias(x, name, weights):
    return F.linear(x, weights[f"{name}.weight"])


def map_slips() -> Iterator[Slip]:
    for name, words, product in (
        ("weight_transposed", N_("the weight is transposed: x W, not x Wᵀ"), transposed),
        ("bias_left_out", N_("the bias is left out"), without_bias),
    ):

        def change(formulas, tap, product=product):
            at = tap.split(".", 2)[-1] if tap.startswith("blocks.") else tap
            return formulas.but(linears={**formulas.linears, at: product})

        yield Slip(name, words, "", MAPS, change)
