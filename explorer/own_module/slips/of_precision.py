"""Norms in fewer bits: told by what they give, as nobody can say in which order another rounds."""

import torch
from torch import Tensor

from explorer.language import N_
from explorer.own_module.formulas import Formulas
from explorer.own_module.slips.slip import Slip

MOST_UNITS = 16  # half units in the last place that a norm in fewer bits is off by at most
HALF_UNIT = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def unchanged(formulas: Formulas, tap: str) -> Formulas:
    return formulas


TAPS = "attn_norm", "ffn_norm", "final_norm"
FLOAT16 = Slip("float16_norm", N_("the norm is computed in float16, not in float32"), "", TAPS, unchanged)
BFLOAT16 = Slip("bfloat16_norm", N_("the norm is computed in bfloat16, not in float32"), "", TAPS, unchanged)
PRECISION = {torch.bfloat16: BFLOAT16, torch.float16: FLOAT16}  # float16 can hold most numbers of bfloat16, too


def reduced(seen: Tensor, wanted: Tensor, x: Tensor, gain: Tensor, again) -> Slip | None:
    """The slip that a norm's output tells of: that all its numbers, or those before the gain, are some that fewer bits
    can hold, near to the right ones; or that they are exactly those of an input in fewer bits.

    Args:
        seen, wanted: (T, D) what it gives and what it should.
        x: (T, D) what it reads.
        again: the right norm, as a function of what it reads.
    """
    for dtype, slip in PRECISION.items():
        near = MOST_UNITS * HALF_UNIT[dtype]
        if not ((seen - wanted).abs() <= near * wanted.abs() + near * 1e-2).all():
            continue
        before = seen / gain
        rounded = before.to(dtype).float()
        if torch.equal(seen, seen.to(dtype).float()) or torch.allclose(before, rounded, rtol=1e-6, atol=0):
            return slip
        if torch.allclose(again(x.to(dtype).float()), seen, rtol=1e-6, atol=1e-7):
            return slip
    return None
