"""Slips in how heads are split, shared and joined."""

from collections.abc import Iterator

from torch import Tensor

from explorer.language import N_
from explorer.own_module.slips.slip import Slip


def as_rows_of_heads(x: Tensor, heads: int) -> Tensor:
    """The heads as if the tokens came after them: a view without the transposition."""
    return x.reshape(heads, len(x), -1)


def interleaved(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (-1, heads)).permute(2, 0, 1)


def interleaved_back(z: Tensor) -> Tensor:
    return z.permute(1, 2, 0).flatten(-2)


def rows_of_heads_back(z: Tensor) -> Tensor:
    return z.reshape(z.shape[1], -1)


def tiled(k: Tensor, heads: int) -> Tensor:
    return k.repeat(heads // len(k), 1, 1)


VARIANTS = (  # name, words, place, changed formulas
    (
        "heads_without_transpose",
        N_("heads are split wrongly: a view without the transposition"),
        "q",
        {"split": as_rows_of_heads, "merge": rows_of_heads_back},
    ),
    (
        "heads_split_only",
        N_("heads are split wrongly, by a view without the transposition, and joined rightly"),
        "q",
        {"split": as_rows_of_heads},
    ),
    (
        "heads_interleaved",
        N_("heads are split wrongly: each takes every H-th dimension"),
        "q",
        {"split": interleaved, "merge": interleaved_back},
    ),
    (
        "heads_interleaved_split",
        N_("heads are split wrongly, each takes every H-th dimension, and joined rightly"),
        "q",
        {"split": interleaved},
    ),
    (
        "heads_joined_wrongly",
        N_("heads are joined wrongly: a view without the transposition"),
        "z",
        {"merge": rows_of_heads_back},
    ),
    (
        "heads_joined_interleaved",
        N_("heads are joined wrongly: dimension by dimension"),
        "z",
        {"merge": interleaved_back},
    ),
    (
        "shared_heads_tiled",
        N_("keys and values are shared by the wrong heads: every G-th, not neighbours"),
        "scores",
        {"shared": tiled},
    ),
)


def head_slips() -> Iterator[Slip]:
    for name, words, place, changed in VARIANTS:

        def change(formulas, tap, changed=changed):
            return formulas.but(**changed)

        yield Slip(name, words, f"attn.{place}", ("attn.z",), change)
