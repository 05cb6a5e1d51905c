"""Bugs of attention: rotation of queries and keys; scale, mask and softmax; splitting, sharing and merging heads."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from explorer.diagnosis.reference_formulas import KnownBug, mask_scores
from explorer.translations import N_
from model.layers.positions import rotate_adjacent, rotate_half_split

THETAS = {
    100.0: N_("θ is 100"),
    1000.0: N_("θ is 1,000"),
    10000.0: N_("θ is 10,000"),
    100000.0: N_("θ is 100,000"),
    500000.0: N_("θ is 500,000"),
    1000000.0: N_("θ is 1,000,000"),
}


def offset_positions(queries: int, keys: int):
    """Return a function T -> positions of queries and keys, both shifted."""
    return lambda length: (torch.arange(length) + queries, torch.arange(length) + keys)


def swap_pairing(formulas, tap):
    """Pair dimensions the other way."""
    other = rotate_adjacent if formulas.rotate is rotate_half_split else rotate_half_split
    return formulas.replace(rotate=other)


def rotate_backwards(formulas, tap):
    """Return the formulas with rotations by the negative angles."""
    return formulas.replace(rotate=lambda x, cos, sin: formulas.rotate(x, cos, -sin))


def flip_sine_sign(formulas, tap):
    """Flip a sine's sign: a cos − b sin becomes a cos + b sin."""
    return formulas.replace(rotate=_rotate_flipped)


def _rotate_flipped(x, cos, sin):
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

    return formulas.replace(frequencies=frequencies, rotate=rotate)


def skip_rotation(x, cos, sin):
    """Return the vectors unrotated."""
    return x


def rotate_only(vector: str):
    """Rotate only the queries ("q") or only the keys ("k")."""

    def change(formulas, tap):
        def positions(length):
            queries, keys = formulas.positions(length)
            return (queries, keys * 0) if vector == "q" else (queries * 0, keys)

        return formulas.replace(positions=positions)

    return change


def change_frequency_exponent(power):
    """Set the frequencies of the pairs i to θ^-power(i, config)."""

    def change(formulas, tap):
        def frequencies(config):
            i = torch.arange(config.d_head // 2, dtype=torch.float64)
            return config.rope_theta ** -power(i, config)

        return formulas.replace(frequencies=frequencies)

    return change


def change_theta(theta: float):
    """Return a change of the formulas to another base of the rotary frequencies."""

    def change(formulas, tap):
        def frequencies(config):
            return theta ** -(torch.arange(0, config.d_head, 2, dtype=torch.float64) / config.d_head)

        return formulas.replace(frequencies=frequencies)

    return change


APPLIES_TO = {
    "rotation_torn": lambda config: config.rope_layout == "adjacent",
    "rotation_before_heads": lambda config: config.rope_layout == "adjacent",
}


def rope_bugs() -> Iterator[KnownBug]:
    """Yield the known bugs of rotary position embeddings."""
    for name, text, first_tap, change in (
        (
            "rotation_of_halves",
            N_(
                "the rotation pairs dimensions otherwise: halves (i, i + d/2) in the place of neighbours (2i, 2i + 1), "
                "or the reverse"
            ),
            "attn.q_rot",
            swap_pairing,
        ),
        (
            "rotation_torn",
            N_("neighbours are rotated, but laid down as halves, in queries and keys alike"),
            "attn.q_rot",
            lambda f, t: f.replace(rotate=mix_pairings),
        ),
        (
            "rotation_twice",
            N_("queries and keys are rotated twice"),
            "attn.q_rot",
            lambda f, t: f.replace(rotate=lambda x, cos, sin: f.rotate(f.rotate(x, cos, sin), cos, sin)),
        ),
        (
            "rotation_before_heads",
            N_("all of a token’s dimensions are rotated together, before the heads are split"),
            "attn.q_rot",
            rotate_across_heads,
        ),
        (
            "rotation_left_out",
            N_("queries and keys are not rotated"),
            "attn.q_rot",
            lambda f, t: f.replace(rotate=skip_rotation),
        ),
        (
            "rotation_backwards",
            N_("the rotation goes the other way: the sign of the sine is wrong"),
            "attn.q_rot",
            rotate_backwards,
        ),
        ("rotation_mirrored", N_("the minus of the rotation is missing"), "attn.q_rot", flip_sine_sign),
        ("rotation_of_values", N_("values are rotated, too"), "attn.z", lambda f, t: f.replace(rotates_values=True)),
        ("queries_turned_alone", N_("queries are rotated, keys are not"), "attn.k_rot", rotate_only("q")),
        ("keys_turned_alone", N_("keys are rotated, queries are not"), "attn.q_rot", rotate_only("k")),
        (
            "positions_off_by_one",
            N_("positions count from 1, not from 0"),
            "attn.q_rot",
            lambda f, t: f.replace(positions=offset_positions(1, 1)),
        ),
        (
            "query_positions_off_by_one",
            N_("the queries’ positions are off by one: they count from 1"),
            "attn.q_rot",
            lambda f, t: f.replace(positions=offset_positions(1, 0)),
        ),
        (
            "key_positions_off_by_one",
            N_("the keys’ positions are off by one: they count from 1"),
            "attn.k_rot",
            lambda f, t: f.replace(positions=offset_positions(0, 1)),
        ),
        (
            "frequencies_half",
            N_("the frequencies fall half as fast: θ^(−i/d), not θ^(−2i/d)"),
            "attn.q_rot",
            change_frequency_exponent(lambda i, c: i / c.d_head),
        ),
        (
            "frequencies_double",
            N_("the frequencies fall twice as fast: θ^(−4i/d), not θ^(−2i/d)"),
            "attn.q_rot",
            change_frequency_exponent(lambda i, c: 4 * i / c.d_head),
        ),
        (
            "frequencies_of_model",
            N_("the frequencies fall by the width of the model: θ^(−2i/D)"),
            "attn.q_rot",
            change_frequency_exponent(lambda i, c: 2 * i / c.d_model),
        ),
        (
            "frequencies_from_one",
            N_("the pairs of the frequencies count from 1: θ^(−2(i + 1)/d)"),
            "attn.q_rot",
            change_frequency_exponent(lambda i, c: 2 * (i + 1) / c.d_head),
        ),
        (
            "frequencies_rising",
            N_("the frequencies grow where they should fall: θ^(2i/d)"),
            "attn.q_rot",
            change_frequency_exponent(lambda i, c: -2 * i / c.d_head),
        ),
    ):
        yield KnownBug(name, text, first_tap, ("attn.z",), change, APPLIES_TO.get(name, lambda config: True))
    for theta, text in THETAS.items():
        yield KnownBug(f"theta_{theta:.0f}", text, "attn.q_rot", ("attn.z",), change_theta(theta))


LARGE = 1e9  # what people subtract in the place of infinity


def replace_formulas(**changed):
    """Return a bug's change that replaces some formulas."""
    return lambda formulas, tap: formulas.replace(**changed)


def shift_mask(diagonal: int):
    """Return a function T -> mask (T, T) whose diagonal is shifted."""
    return lambda length: torch.ones(length, length).tril(diagonal).bool()


def mask_after_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the pattern with the mask multiplied after the softmax."""
    return torch.softmax(scores, -1) * allowed


def zero_before_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the pattern with masked scores set to 0 instead of −∞."""
    return torch.softmax(scores * allowed, -1)


def make_softmax(dim: int):
    """Return the masked softmax over another dimension."""
    return lambda scores, allowed: torch.softmax(mask_scores(scores, allowed), dim)


def make_finite_mask_softmax(dim: int):
    """Return the softmax over a dimension with a large finite number in the place of −∞."""
    return lambda scores, allowed: torch.softmax(scores.masked_fill(~allowed, -LARGE), dim)


def make_nan_to_zero_softmax(dim: int):
    """Return the masked softmax over a dimension with 0 in the place of NaN."""
    return lambda scores, allowed: torch.softmax(mask_scores(scores, allowed), dim).nan_to_num(0.0)


def finite_mask_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the pattern with a large finite number in the place of −∞."""
    return torch.softmax(scores.masked_fill(~allowed, -LARGE), -1)


def skip_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the masked scores as the pattern."""
    return scores * allowed


def inverted_finite_mask_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the pattern with the mask inverted and finite."""
    return finite_mask_softmax(scores, ~allowed)


def inverted_mask_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the pattern with the mask inverted."""
    return torch.softmax(mask_scores(scores, ~allowed), -1)


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
        {"mask": shift_mask(1)},
    ),
    (
        "mask_hides_self",
        N_("the mask is off by one: no token sees itself"),
        "pattern",
        {"mask": shift_mask(-1), "pattern": lambda s, m: torch.softmax(mask_scores(s, m), -1)},
    ),
    (
        "mask_hides_self_finite",
        N_("the mask is off by one: no token sees itself, and the first sees all"),
        "pattern",
        {"mask": shift_mask(-1), "pattern": finite_mask_softmax},
    ),
    (
        "mask_hides_self_zero",
        N_("the mask is off by one: no token sees itself, and the first sees nothing"),
        "pattern",
        {"mask": shift_mask(-1), "pattern": lambda s, m: torch.softmax(mask_scores(s, m), -1).nan_to_num(0.0)},
    ),
    ("no_mask", N_("there is no causal mask"), "pattern", {"mask": lambda n: torch.ones(n, n).bool()}),
    (
        "mask_inverted",
        N_("the mask is the wrong way round: tokens see only later ones"),
        "pattern",
        {"pattern": inverted_mask_softmax},
    ),
    (
        "mask_inverted_finite",
        N_("the mask is the wrong way round: tokens see only later ones, and the last all"),
        "pattern",
        {"pattern": inverted_finite_mask_softmax},
    ),
    (
        "mask_transposed",
        N_("the mask is the wrong way round: tokens see themselves and later ones"),
        "pattern",
        {"mask": lambda n: torch.ones(n, n).triu().bool()},
    ),
    (
        "mask_after_softmax",
        N_("the mask comes after the softmax: rows do not sum to 1"),
        "pattern",
        {"pattern": mask_after_softmax},
    ),
    (
        "mask_of_zeros",
        N_("the mask puts 0 in the place of −∞ before the softmax"),
        "pattern",
        {"pattern": zero_before_softmax},
    ),
    (
        "softmax_over_queries",
        N_("the softmax is taken over queries, not over keys"),
        "pattern",
        {"pattern": make_softmax(-2)},
    ),
    (
        "softmax_over_heads",
        N_("the softmax is taken over heads, not over keys"),
        "pattern",
        {"pattern": make_nan_to_zero_softmax(0)},
    ),
    (
        "softmax_over_heads_nan",
        N_("the softmax is taken over heads, not over keys: what is masked is no number"),
        "pattern",
        {"pattern": make_softmax(0)},
    ),
    (
        "softmax_over_heads_finite",
        N_("the softmax is taken over heads, not over keys, so that nothing is masked"),
        "pattern",
        {"pattern": make_finite_mask_softmax(0)},
    ),
    (
        "softmax_over_batch",
        N_("the softmax is taken over the batch, not over keys: with one text all is 1"),
        "pattern",
        {"pattern": lambda scores, allowed: torch.ones_like(scores)},
    ),
    (
        "softmax_not_divided",
        N_("what the softmax exponentiates is not divided by its sum"),
        "pattern",
        {"pattern": lambda scores, allowed: mask_scores(scores, allowed).exp()},
    ),
    (
        "softmax_over_rows",
        N_("the softmax is taken over queries and keys together"),
        "pattern",
        {"pattern": lambda scores, allowed: mask_scores(scores, allowed).flatten(-2).softmax(-1).view_as(scores)},
    ),
    (
        "pattern_transposed",
        N_("the pattern is transposed before it fetches values"),
        "z",
        {"weighted_sum": lambda pattern, values: pattern.transpose(-2, -1) @ values},
    ),
    ("no_softmax", N_("there is no softmax"), "pattern", {"pattern": skip_softmax}),
    ("keys_and_values_swapped", N_("keys and values are swapped"), "k", {"qkv": lambda q, k, v: (q, v, k)}),
    ("queries_and_values_swapped", N_("queries and values are swapped"), "q", {"qkv": lambda q, k, v: (v, k, q)}),
    (
        "values_keys_queries_in_turn",
        N_("of queries, keys and values each is taken for the next: they are split in another order"),
        "q",
        {"qkv": lambda q, k, v: (v, q, k)},
    ),
    (
        "keys_values_queries_in_turn",
        N_("of queries, keys and values each is taken for the one before: they are split in another order"),
        "q",
        {"qkv": lambda q, k, v: (k, v, q)},
    ),
    (
        "keys_for_values",
        N_("what is fetched is keys: values are not used"),
        "v",
        {"qkv": lambda q, k, v: (q, k, k)},
    ),
    (
        "queries_for_keys",
        N_("queries are their own keys: keys are not used"),
        "k",
        {"qkv": lambda q, k, v: (q, q, v)},
    ),
    (
        "queries_for_all",
        N_("queries stand for keys and values, too: neither is used"),
        "k",
        {"qkv": lambda q, k, v: (q, q, q)},
    ),
    (
        "keys_and_queries_swapped",
        N_("queries and keys are swapped"),
        "scores",
        {"scores": lambda q, k, d: attention_scores(k, q, d)},
    ),
)


def attention_scores(q: Tensor, k: Tensor, divisor: float) -> Tensor:
    """Return the scores (H, T, T) with the queries divided instead of the scores."""
    return (q / divisor) @ k.transpose(-2, -1)


def attention_bugs() -> Iterator[KnownBug]:
    """Yield the known bugs of attention."""
    for name, text, first_tap, changed in VARIANTS:
        yield KnownBug(name, text, f"attn.{first_tap}", ("attn.z",), replace_formulas(**changed))


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


HEAD_VARIANTS = (  # name, words, place, changed formulas
    (
        "heads_without_transpose",
        N_("heads are split wrongly: a view without the transposition"),
        "q",
        {"split": split_without_transpose, "merge": merge_without_transpose},
    ),
    (
        "heads_split_only",
        N_("heads are split wrongly, by a view without the transposition, and joined rightly"),
        "q",
        {"split": split_without_transpose},
    ),
    (
        "heads_interleaved",
        N_("heads are split wrongly: each takes every H-th dimension"),
        "q",
        {"split": interleave_heads, "merge": undo_interleave},
    ),
    (
        "heads_interleaved_split",
        N_("heads are split wrongly, each takes every H-th dimension, and joined rightly"),
        "q",
        {"split": interleave_heads},
    ),
    (
        "heads_joined_wrongly",
        N_("heads are joined wrongly: a view without the transposition"),
        "z",
        {"merge": merge_without_transpose},
    ),
    (
        "heads_joined_interleaved",
        N_("heads are joined wrongly: dimension by dimension"),
        "z",
        {"merge": undo_interleave},
    ),
    (
        "shared_heads_tiled",
        N_("keys and values are shared by the wrong heads: every G-th, not neighbours"),
        "scores",
        {"repeat_kv": tile_kv_heads},
    ),
)


def head_bugs() -> Iterator[KnownBug]:
    """Yield the known bugs of splitting, sharing and merging heads."""
    for name, text, first_tap, changed in HEAD_VARIANTS:

        def change(formulas, tap, changed=changed):
            return formulas.replace(**changed)

        yield KnownBug(name, text, f"attn.{first_tap}", ("attn.z",), change)
