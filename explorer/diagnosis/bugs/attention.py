"""Bugs of attention: rotation of queries and keys; scale, mask and softmax; splitting, sharing and merging heads."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from explorer.diagnosis.reference_formulas import KnownBug, mask_scores
from explorer.translations import N_
from model.config import ModelConfig
from model.layers.positions import rotate_adjacent, rotate_half_split


def swap_pairing(formulas, tap):
    """Pair dimensions the other way."""
    return replace(formulas, rotate=rotate_adjacent if formulas.rotate is rotate_half_split else rotate_half_split)


def rotate_twice(formulas, tap):
    """Return the formulas with two rotations in the place of one."""
    return replace(formulas, rotate=lambda x, cos, sin: formulas.rotate(formulas.rotate(x, cos, sin), cos, sin))


def rotate_backwards(formulas, tap):
    """Return the formulas with rotations by the negative angles."""
    return replace(formulas, rotate=lambda x, cos, sin: formulas.rotate(x, cos, -sin))


def rotate_with_plus(x, cos, sin):
    """Return the rotated pairs with a cos + b sin in the place of a cos − b sin."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos + b * sin, a * sin + b * cos), dim=-1).flatten(-2)


def mix_pairings(x, cos, sin):
    """Rotate adjacent pairs, but write them as halves."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


def rotate_across_heads(formulas, tap):
    """Rotate one vector as wide as all heads, whose frequencies decrease with its width."""

    def frequencies(config):
        width = config.num_heads * config.d_head
        return config.rope_theta ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)

    def rotate(x, cos, sin):
        pairs = len(x) * x.shape[-1] // 2  # of keys fewer, where several queries share one
        tables = (table[:, :pairs].unflatten(-1, (len(x), -1)).transpose(0, 1) for table in (cos, sin))  # (H, T, d/2)
        return formulas.rotate(x, *tables)

    return replace(formulas, frequencies=frequencies, rotate=rotate)


def make_frequencies(power=lambda i, config: 2 * i / config.d_head, theta: float | None = None):
    """Return the function config -> frequencies θ^-power(i, config) of the pairs i."""

    def frequencies(config):
        i = torch.arange(config.d_head // 2, dtype=torch.float64)
        return (theta or config.rope_theta) ** -power(i, config)

    return frequencies


VISIBLE_AT = ("attn.z",)
FIRST_TAPS = {  # formula -> the first tap that it changes
    **dict.fromkeys(("split", "qkv"), "attn.q"),
    **dict.fromkeys(("rotate", "frequencies"), "attn.q_rot"),
    **dict.fromkeys(("scores", "divisor", "repeat_kv"), "attn.scores"),
    **dict.fromkeys(("pattern", "mask"), "attn.pattern"),
    **dict.fromkeys(("weighted_sum", "merge", "rotates_values"), "attn.z"),
}


def attention_bug(name: str, text: str, first_tap: str = "", **formulas) -> KnownBug:
    """Return the bug that these formulas are used; its first tap is that of the first of them, if it is not given."""
    first_tap = first_tap or FIRST_TAPS[next(iter(formulas))]
    return KnownBug(name, text, first_tap, VISIBLE_AT, lambda reference, tap: replace(reference, **formulas))


def position_bug(name: str, text: str, queries: Callable | None = None, keys: Callable | None = None) -> KnownBug:
    """Return the bug that the positions of queries, of keys or of both are functions of the right ones."""

    def change(formulas, tap):
        def positions(length):
            q, k = formulas.positions(length)
            return queries(q) if queries else q, keys(k) if keys else k

        return replace(formulas, positions=positions)

    return KnownBug(name, text, "attn.q_rot" if queries else "attn.k_rot", VISIBLE_AT, change)


def has_adjacent_pairs(config: ModelConfig) -> bool:
    """Return whether the rotation pairs neighbours."""
    return config.rope_layout == "adjacent"


ROPE_BUGS = (
    KnownBug(
        "rotation_of_halves",
        N_(
            "the rotation pairs dimensions otherwise: halves (i, i + d/2) in the place of neighbours (2i, 2i + 1), "
            "or the reverse"
        ),
        "attn.q_rot",
        VISIBLE_AT,
        swap_pairing,
    ),
    KnownBug(
        "rotation_torn",
        N_("neighbours are rotated, but laid down as halves, in queries and keys alike"),
        "attn.q_rot",
        VISIBLE_AT,
        lambda formulas, tap: replace(formulas, rotate=mix_pairings),
        has_adjacent_pairs,
    ),
    KnownBug("rotation_twice", N_("queries and keys are rotated twice"), "attn.q_rot", VISIBLE_AT, rotate_twice),
    KnownBug(
        "rotation_before_heads",
        N_("all of a token’s dimensions are rotated together, before the heads are split"),
        "attn.q_rot",
        VISIBLE_AT,
        rotate_across_heads,
        has_adjacent_pairs,
    ),
    attention_bug("rotation_left_out", N_("queries and keys are not rotated"), rotate=lambda x, cos, sin: x),
    KnownBug(
        "rotation_backwards",
        N_("the rotation goes the other way: the sign of the sine is wrong"),
        "attn.q_rot",
        VISIBLE_AT,
        rotate_backwards,
    ),
    attention_bug("rotation_mirrored", N_("the minus of the rotation is missing"), rotate=rotate_with_plus),
    attention_bug("rotation_of_values", N_("values are rotated, too"), rotates_values=True),
    position_bug("queries_turned_alone", N_("queries are rotated, keys are not"), keys=lambda m: 0 * m),
    position_bug("keys_turned_alone", N_("keys are rotated, queries are not"), queries=lambda m: 0 * m),
    position_bug("positions_off_by_one", N_("positions count from 1, not from 0"), lambda m: m + 1, lambda m: m + 1),
    position_bug(
        "query_positions_off_by_one", N_("the queries’ positions are off by one: they count from 1"), lambda m: m + 1
    ),
    position_bug(
        "key_positions_off_by_one", N_("the keys’ positions are off by one: they count from 1"), keys=lambda m: m + 1
    ),
    attention_bug(
        "frequencies_half",
        N_("the frequencies fall half as fast: θ^(−i/d), not θ^(−2i/d)"),
        frequencies=make_frequencies(lambda i, c: i / c.d_head),
    ),
    attention_bug(
        "frequencies_double",
        N_("the frequencies fall twice as fast: θ^(−4i/d), not θ^(−2i/d)"),
        frequencies=make_frequencies(lambda i, c: 4 * i / c.d_head),
    ),
    attention_bug(
        "frequencies_of_model",
        N_("the frequencies fall by the width of the model: θ^(−2i/D)"),
        frequencies=make_frequencies(lambda i, c: 2 * i / c.d_model),
    ),
    attention_bug(
        "frequencies_from_one",
        N_("the pairs of the frequencies count from 1: θ^(−2(i + 1)/d)"),
        frequencies=make_frequencies(lambda i, c: 2 * (i + 1) / c.d_head),
    ),
    attention_bug(
        "frequencies_rising",
        N_("the frequencies grow where they should fall: θ^(2i/d)"),
        frequencies=make_frequencies(lambda i, c: -2 * i / c.d_head),
    ),
    *(
        replace(
            attention_bug(f"theta_{theta}", N_("θ is {theta}"), frequencies=make_frequencies(theta=theta)),
            values=(("theta", f"{theta:,}"),),
        )
        for theta in (100, 1000, 10000, 100000, 500000, 1000000)
    ),
)


LARGE = 1e9  # what people subtract in the place of infinity


def masked_softmax(dim: int = -1, fill: float = -math.inf, nan: float = math.nan, inverted: bool = False) -> Callable:
    """Return the function (scores, allowed) -> pattern, with other numbers for what is masked and what is NaN."""

    def pattern(scores: Tensor, allowed: Tensor) -> Tensor:
        return torch.softmax(scores.masked_fill(allowed == inverted, fill), dim).nan_to_num(nan)

    return pattern


def shift_mask(diagonal: int):
    """Return a function T -> mask (T, T) whose diagonal is shifted."""
    return lambda length: torch.ones(length, length).tril(diagonal).bool()


def mask_after_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the pattern with the mask multiplied after the softmax."""
    return torch.softmax(scores, -1) * allowed


def zero_before_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the pattern with masked scores set to 0 instead of −∞."""
    return torch.softmax(scores * allowed, -1)


def skip_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the masked scores as the pattern."""
    return scores * allowed


def attention_scores(q: Tensor, k: Tensor, divisor: float) -> Tensor:
    """Return the scores (H, T, T) with the queries divided instead of the scores."""
    return (q / divisor) @ k.transpose(-2, -1)


ATTENTION_BUGS = (
    attention_bug("no_scale", N_("scores are not divided by √d"), divisor=lambda c: 1.0),
    attention_bug("scale_1_over_d", N_("scores are divided by d, not by √d"), divisor=lambda c: float(c.d_head)),
    attention_bug(
        "scale_of_model",
        N_("scores are divided by √D, the width of the model, not by √d, that of a head"),
        divisor=lambda c: math.sqrt(c.d_model),
    ),
    attention_bug("scale_times_root", N_("scores are multiplied by √d"), divisor=lambda c: 1 / math.sqrt(c.d_head)),
    attention_bug(
        "scale_twice", N_("scores are divided by √d twice over, by 2 √d"), divisor=lambda c: 2 * math.sqrt(c.d_head)
    ),
    attention_bug(
        "scale_by_heads",
        N_("scores are divided by √H, the root of how many heads there are"),
        divisor=lambda c: math.sqrt(c.num_heads),
    ),
    attention_bug("mask_sees_next", N_("the mask is off by one: each token sees the next one"), mask=shift_mask(1)),
    attention_bug(
        "mask_hides_self",
        N_("the mask is off by one: no token sees itself"),
        mask=shift_mask(-1),
        pattern=masked_softmax(),
    ),
    attention_bug(
        "mask_hides_self_finite",
        N_("the mask is off by one: no token sees itself, and the first sees all"),
        mask=shift_mask(-1),
        pattern=masked_softmax(fill=-LARGE),
    ),
    attention_bug(
        "mask_hides_self_zero",
        N_("the mask is off by one: no token sees itself, and the first sees nothing"),
        mask=shift_mask(-1),
        pattern=masked_softmax(nan=0.0),
    ),
    attention_bug("no_mask", N_("there is no causal mask"), mask=lambda n: torch.ones(n, n).bool()),
    attention_bug(
        "mask_inverted",
        N_("the mask is the wrong way round: tokens see only later ones"),
        pattern=masked_softmax(inverted=True),
    ),
    attention_bug(
        "mask_inverted_finite",
        N_("the mask is the wrong way round: tokens see only later ones, and the last all"),
        pattern=masked_softmax(fill=-LARGE, inverted=True),
    ),
    attention_bug(
        "mask_transposed",
        N_("the mask is the wrong way round: tokens see themselves and later ones"),
        mask=lambda n: torch.ones(n, n).triu().bool(),
    ),
    attention_bug(
        "mask_after_softmax", N_("the mask comes after the softmax: rows do not sum to 1"), pattern=mask_after_softmax
    ),
    attention_bug(
        "mask_of_zeros", N_("the mask puts 0 in the place of −∞ before the softmax"), pattern=zero_before_softmax
    ),
    attention_bug(
        "softmax_over_queries", N_("the softmax is taken over queries, not over keys"), pattern=masked_softmax(-2)
    ),
    attention_bug(
        "softmax_over_heads", N_("the softmax is taken over heads, not over keys"), pattern=masked_softmax(0, nan=0.0)
    ),
    attention_bug(
        "softmax_over_heads_nan",
        N_("the softmax is taken over heads, not over keys: what is masked is no number"),
        pattern=masked_softmax(0),
    ),
    attention_bug(
        "softmax_over_heads_finite",
        N_("the softmax is taken over heads, not over keys, so that nothing is masked"),
        pattern=masked_softmax(0, fill=-LARGE),
    ),
    attention_bug(
        "softmax_over_batch",
        N_("the softmax is taken over the batch, not over keys: with one text all is 1"),
        pattern=lambda scores, allowed: torch.ones_like(scores),
    ),
    attention_bug(
        "softmax_not_divided",
        N_("what the softmax exponentiates is not divided by its sum"),
        pattern=lambda scores, allowed: mask_scores(scores, allowed).exp(),
    ),
    attention_bug(
        "softmax_over_rows",
        N_("the softmax is taken over queries and keys together"),
        pattern=lambda scores, allowed: mask_scores(scores, allowed).flatten(-2).softmax(-1).view_as(scores),
    ),
    attention_bug(
        "pattern_transposed",
        N_("the pattern is transposed before it fetches values"),
        weighted_sum=lambda pattern, values: pattern.transpose(-2, -1) @ values,
    ),
    attention_bug("no_softmax", N_("there is no softmax"), pattern=skip_softmax),
    attention_bug(
        "keys_and_values_swapped", N_("keys and values are swapped"), "attn.k", qkv=lambda q, k, v: (q, v, k)
    ),
    attention_bug("queries_and_values_swapped", N_("queries and values are swapped"), qkv=lambda q, k, v: (v, k, q)),
    attention_bug(
        "values_keys_queries_in_turn",
        N_("of queries, keys and values each is taken for the next: they are split in another order"),
        qkv=lambda q, k, v: (v, q, k),
    ),
    attention_bug(
        "keys_values_queries_in_turn",
        N_("of queries, keys and values each is taken for the one before: they are split in another order"),
        qkv=lambda q, k, v: (k, v, q),
    ),
    attention_bug(
        "keys_for_values", N_("what is fetched is keys: values are not used"), "attn.v", qkv=lambda q, k, v: (q, k, k)
    ),
    attention_bug(
        "queries_for_keys", N_("queries are their own keys: keys are not used"), "attn.k", qkv=lambda q, k, v: (q, q, v)
    ),
    attention_bug(
        "queries_for_all",
        N_("queries stand for keys and values, too: neither is used"),
        "attn.k",
        qkv=lambda q, k, v: (q, q, q),
    ),
    attention_bug(
        "keys_and_queries_swapped", N_("queries and keys are swapped"), scores=lambda q, k, d: attention_scores(k, q, d)
    ),
)


def split_without_transpose(x: Tensor, heads: int) -> Tensor:
    """Split heads by a view without the transposition."""
    return x.reshape(heads, len(x), -1)


def interleave_heads(x: Tensor, heads: int) -> Tensor:
    """Split (T, H d) into heads (H, T, d) with neighbouring dimensions in different heads."""
    return x.unflatten(-1, (-1, heads)).permute(2, 0, 1)


def undo_interleave(z: Tensor) -> Tensor:
    """Merge heads (H, T, d) that were interleaved into (T, H d)."""
    return z.permute(1, 2, 0).flatten(-2)


def merge_without_transpose(z: Tensor) -> Tensor:
    """Merge heads (H, T, d) into (T, H d) without swapping heads and tokens."""
    return z.reshape(z.shape[1], -1)


def tile_kv_heads(k: Tensor, heads: int) -> Tensor:
    """Repeat all key or value heads in turn, (G, T, d) -> (H, T, d), instead of each beside itself."""
    return k.repeat(heads // len(k), 1, 1)


HEAD_BUGS = (
    attention_bug(
        "heads_without_transpose",
        N_("heads are split wrongly: a view without the transposition"),
        split=split_without_transpose,
        merge=merge_without_transpose,
    ),
    attention_bug(
        "heads_split_only",
        N_("heads are split wrongly, by a view without the transposition, and joined rightly"),
        split=split_without_transpose,
    ),
    attention_bug(
        "heads_interleaved",
        N_("heads are split wrongly: each takes every H-th dimension"),
        split=interleave_heads,
        merge=undo_interleave,
    ),
    attention_bug(
        "heads_interleaved_split",
        N_("heads are split wrongly, each takes every H-th dimension, and joined rightly"),
        split=interleave_heads,
    ),
    attention_bug(
        "heads_joined_wrongly",
        N_("heads are joined wrongly: a view without the transposition"),
        merge=merge_without_transpose,
    ),
    attention_bug(
        "heads_joined_interleaved", N_("heads are joined wrongly: dimension by dimension"), merge=undo_interleave
    ),
    attention_bug(
        "shared_heads_tiled",
        N_("keys and values are shared by the wrong heads: every G-th, not neighbours"),
        repeat_kv=tile_kv_heads,
    ),
)
