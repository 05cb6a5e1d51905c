"""Bugs in the rotation of queries and keys."""

from collections.abc import Iterator

import torch

from explorer.diagnosis.reference_formulas import KnownBug
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
            N_("neighbours are turned, but laid down as halves, in queries and keys alike"),
            "attn.q_rot",
            lambda f, t: f.replace(rotate=mix_pairings),
        ),
        (
            "rotation_twice",
            N_("queries and keys are turned twice"),
            "attn.q_rot",
            lambda f, t: f.replace(rotate=lambda x, cos, sin: f.rotate(f.rotate(x, cos, sin), cos, sin)),
        ),
        (
            "rotation_before_heads",
            N_("all of a token’s dimensions are turned together, before the heads are split"),
            "attn.q_rot",
            rotate_across_heads,
        ),
        (
            "rotation_left_out",
            N_("queries and keys are not turned"),
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
        ("rotation_of_values", N_("values are turned, too"), "attn.z", lambda f, t: f.replace(rotates_values=True)),
        ("queries_turned_alone", N_("queries are turned, keys are not"), "attn.k_rot", rotate_only("q")),
        ("keys_turned_alone", N_("keys are turned, queries are not"), "attn.q_rot", rotate_only("k")),
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
