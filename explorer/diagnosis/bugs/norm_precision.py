"""The bug that a norm is computed in float16 or bfloat16, recognised by its output."""

import torch
from torch import Tensor

from explorer.diagnosis.bugs.bug import KnownBug
from explorer.diagnosis.reference_formulas import Formulas
from explorer.translations import N_

MAX_HALF_UNITS = 16  # maximum error of a norm in lower precision, in half units in the last place
RELATIVE_HALF_UNIT = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def keep_formulas(formulas: Formulas, tap: str) -> Formulas:
    """Return the formulas unchanged."""
    return formulas


TAPS = "attn_norm", "ffn_norm", "final_norm"
FLOAT16 = KnownBug("float16_norm", N_("the norm is computed in float16, not in float32"), "", TAPS, keep_formulas)
BFLOAT16 = KnownBug("bfloat16_norm", N_("the norm is computed in bfloat16, not in float32"), "", TAPS, keep_formulas)
PRECISION = {torch.bfloat16: BFLOAT16, torch.float16: FLOAT16}  # float16 can hold most numbers of bfloat16, too


def find_reduced_precision(actual: Tensor, expected: Tensor, x: Tensor, gain: Tensor, norm) -> KnownBug | None:
    """Return the bug that a norm is computed in lower precision; None where its output does not show it.

    All numbers of the output, or of the output before the gain, are representable in that dtype and close to the
    expected ones; or they are exactly those of a rounded input.

    Args:
        actual, expected: (T, D) outputs of the norm.
        x: (T, D) its input.
        norm: the correct norm, as a function of its input.
    """
    for dtype, bug in PRECISION.items():
        tolerance = MAX_HALF_UNITS * RELATIVE_HALF_UNIT[dtype]
        if not ((actual - expected).abs() <= tolerance * expected.abs() + tolerance * 1e-2).all():
            continue
        normalised = actual / gain
        rounded = normalised.to(dtype).float()
        if torch.equal(actual, actual.to(dtype).float()) or torch.allclose(normalised, rounded, rtol=1e-6, atol=0):
            return bug
        if torch.allclose(norm(x.to(dtype).float()), actual, rtol=1e-6, atol=1e-7):
            return bug
    return None
