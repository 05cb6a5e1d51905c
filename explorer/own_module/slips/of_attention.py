"""Slips between the attention's maps: heads, scale, mask and softmax."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from explorer.language import N_
from explorer.own_module.formulas import masked
from explorer.own_module.slips.slip import Slip

LARGE = 1e9  # what people subtract in the place of infinity


def shown_as(**changed):
    """A slip's change, where it replaces formulas whatever they were."""
    return lambda formulas, tap: formulas.but(**changed)


def moved_mask(diagonal: int):
    return lambda length: torch.ones(length, length).tril(diagonal).bool()


def after_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    return torch.softmax(scores, -1) * allowed


def zero_before_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    return torch.softmax(scores * allowed, -1)


def over(dim: int):
    return lambda scores, allowed: torch.softmax(masked(scores, allowed), dim)


def over_large(dim: int):
    return lambda scores, allowed: torch.softmax(scores.masked_fill(~allowed, -LARGE), dim)


def over_then_zero(dim: int):
    return lambda scores, allowed: torch.softmax(masked(scores, allowed), dim).nan_to_num(0.0)


def large_penalty(scores: Tensor, allowed: Tensor) -> Tensor:
    return torch.softmax(scores.masked_fill(~allowed, -LARGE), -1)


def without_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    return scores * allowed


def inverted(scores: Tensor, allowed: Tensor) -> Tensor:
    return large_penalty(scores, ~allowed)


def inverted_infinite(scores: Tensor, allowed: Tensor) -> Tensor:
    return torch.softmax(masked(scores, ~allowed), -1)


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


VARIANTS = (
    # name, words, place, changed formulas
    ("no_scale", N_("scores are not divided by √d"), "scores", {"divisor": lambda c: 1.0}),
    ("scale_1_over_d", N_("scores are divided by d, not by √d"), "scores", {"divisor": lambda c: float(c.d_head)}),
    (
        "scale_of_model",
        N_("scores are divided by √D, the width of the model, not by √d, that of a head"),
        "scores",
        {"divisor": lambda c: math.sqrt(c.d_model)},
    ),
    ("scale_times_root", N_("scores are multiplied by √d"), "scores", {"divisor": lambda c: 1 / math.sqrt(c.d_head)}),
    (
        "scale_twice",
        N_("scores are divided by √d twice over, by 2 √d"),
        "scores",
        {"divisor": lambda c: 2 * math.sqrt(c.d_head)},
    ),
    (
        "scale_by_heads",
        N_("scores are divided by √H, the root of how many heads there are"),
        "scores",
        {"divisor": lambda c: math.sqrt(c.num_heads)},
    ),
    (
        "mask_sees_next",
        N_("the mask is off by one: each token sees the next one"),
        "pattern",
        {"allowed": moved_mask(1)},
    ),
    (
        "mask_hides_self",
        N_("the mask is off by one: no token sees itself"),
        "pattern",
        {"allowed": moved_mask(-1), "pattern": lambda s, m: torch.softmax(masked(s, m), -1)},
    ),
    (
        "mask_hides_self_finite",
        N_("the mask is off by one: no token sees itself, and the first sees all"),
        "pattern",
        {"allowed": moved_mask(-1), "pattern": large_penalty},
    ),
    (
        "mask_hides_self_zero",
        N_("the mask is off by one: no token sees itself, and the first sees nothing"),
        "pattern",
        {"allowed": moved_mask(-1), "pattern": lambda s, m: torch.softmax(masked(s, m), -1).nan_to_num(0.0)},
    ),
    ("no_mask", N_("there is no causal mask"), "pattern", {"allowed": lambda n: torch.ones(n, n).bool()}),
    (
        "mask_inverted",
        N_("the mask is the wrong way round: tokens see only later ones"),
        "pattern",
        {"pattern": inverted_infinite},
    ),
    (
        "mask_inverted_finite",
        N_("the mask is the wrong way round: tokens see only later ones, and the last all"),
        "pattern",
        {"pattern": inverted},
    ),
    (
        "mask_after_softmax",
        N_("the mask comes after the softmax: rows do not sum to 1"),
        "pattern",
        {"pattern": after_softmax},
    ),
    (
        "mask_of_zeros",
        N_("the mask puts 0 in the place of −∞ before the softmax"),
        "pattern",
        {"pattern": zero_before_softmax},
    ),
    ("softmax_over_queries", N_("the softmax is taken over queries, not over keys"), "pattern", {"pattern": over(-2)}),
    (
        "softmax_over_heads",
        N_("the softmax is taken over heads, not over keys"),
        "pattern",
        {"pattern": over_then_zero(0)},
    ),
    (
        "softmax_over_heads_nan",
        N_("the softmax is taken over heads, not over keys: what is masked is no number"),
        "pattern",
        {"pattern": over(0)},
    ),
    (
        "softmax_over_heads_finite",
        N_("the softmax is taken over heads, not over keys, so that nothing is masked"),
        "pattern",
        {"pattern": over_large(0)},
    ),
    ("no_softmax", N_("there is no softmax"), "pattern", {"pattern": without_softmax}),
    (
        "keys_and_queries_swapped",
        N_("queries and keys are swapped"),
        "scores",
        {"scores": lambda q, k, d: attention_of(k, q, d)},
    ),
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


def attention_of(q: Tensor, k: Tensor, divisor: float) -> Tensor:
    return (q / divisor) @ k.transpose(-2, -1)


def attention_slips() -> Iterator[Slip]:
    for name, words, place, changed in VARIANTS:
        yield Slip(name, words, f"attn.{place}", ("attn.z",), shown_as(**changed))
