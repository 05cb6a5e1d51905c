"""Slips in the rotation of queries and keys."""

from collections.abc import Iterator

import torch

from explorer.language import N_
from explorer.own_module.slips.slip import Slip
from model.layers.rope import rotate_adjacent, rotate_half_split

THETAS = {
    100.0: N_("θ is 100"),
    1000.0: N_("θ is 1,000"),
    10000.0: N_("θ is 10,000"),
    100000.0: N_("θ is 100,000"),
    500000.0: N_("θ is 500,000"),
    1000000.0: N_("θ is 1,000,000"),
}


def counted_from(queries: int, keys: int):
    return lambda length: (torch.arange(length) + queries, torch.arange(length) + keys)


def halves(formulas, tap):
    """The other way to pair dimensions."""
    other = rotate_adjacent if formulas.rotate is rotate_half_split else rotate_half_split
    return formulas.but(rotate=other)


def backwards(formulas, tap):
    return formulas.but(rotate=lambda x, cos, sin: formulas.rotate(x, cos, -sin))


def mirrored(formulas, tap):
    """A sign too many: a sin + b cos becomes −(a sin) + b cos, or a cos + b sin in both."""
    return formulas.but(rotate=_mirrored)


def _mirrored(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos + b * sin, a * sin + b * cos), dim=-1).flatten(-2)


def torn(x, cos, sin):
    """Adjacent pairs turned, but laid down as halves."""
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


def across_heads(formulas, tap):
    """Turned as one vector as wide as all heads, whose frequencies fall by its width."""

    def frequencies(config):
        width = config.num_heads * config.d_head
        return config.rope_theta ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)

    def rotate(x, cos, sin):
        pairs = len(x) * x.shape[-1] // 2  # of keys fewer, where several queries share one
        own = (each[:, :pairs].unflatten(-1, (len(x), -1)).transpose(0, 1) for each in (cos, sin))  # (H, T, d/2)
        return formulas.rotate(x, *own)

    return formulas.but(frequencies=frequencies, rotate=rotate)


def unturned(x, cos, sin):
    return x


def only(which: str):
    """One of queries and keys is turned alone."""

    def change(formulas, tap):
        def positions(length):
            queries, keys = formulas.positions(length)
            return (queries, keys * 0) if which == "q" else (queries * 0, keys)

        return formulas.but(positions=positions)

    return change


def steps(power):
    """Frequencies θ^-power(i, d) of the pairs i."""

    def change(formulas, tap):
        def frequencies(config):
            i = torch.arange(config.d_head // 2, dtype=torch.float64)
            return config.rope_theta ** -power(i, config)

        return formulas.but(frequencies=frequencies)

    return change


def other_theta(theta: float):
    def change(formulas, tap):
        def frequencies(config):
            return theta ** -(torch.arange(0, config.d_head, 2, dtype=torch.float64) / config.d_head)

        return formulas.but(frequencies=frequencies)

    return change


HAS = {
    "rotation_torn": lambda config: config.rope_layout == "adjacent",
    "rotation_before_heads": lambda config: config.rope_layout == "adjacent",
}


def rotation_slips() -> Iterator[Slip]:
    for name, words, place, change in (
        (
            "rotation_of_halves",
            N_(
                "the rotation pairs dimensions otherwise: halves (i, i + d/2) in the place of neighbours (2i, 2i + 1), "
                "or the reverse"
            ),
            "attn.q_rot",
            halves,
        ),
        (
            "rotation_torn",
            N_("neighbours are turned, but laid down as halves, in queries and keys alike"),
            "attn.q_rot",
            lambda f, t: f.but(rotate=torn),
        ),
        (
            "rotation_twice",
            N_("queries and keys are turned twice"),
            "attn.q_rot",
            lambda f, t: f.but(rotate=lambda x, cos, sin: f.rotate(f.rotate(x, cos, sin), cos, sin)),
        ),
        (
            "rotation_before_heads",
            N_("all of a token’s dimensions are turned together, before the heads are split"),
            "attn.q_rot",
            across_heads,
        ),
        ("rotation_left_out", N_("queries and keys are not turned"), "attn.q_rot", lambda f, t: f.but(rotate=unturned)),
        (
            "rotation_backwards",
            N_("the rotation goes the other way: the sign of the sine is wrong"),
            "attn.q_rot",
            backwards,
        ),
        ("rotation_mirrored", N_("the minus of the rotation is missing"), "attn.q_rot", mirrored),
        ("rotation_of_values", N_("values are turned, too"), "attn.z", lambda f, t: f.but(turns_values=True)),
        ("queries_turned_alone", N_("queries are turned, keys are not"), "attn.k_rot", only("q")),
        ("keys_turned_alone", N_("keys are turned, queries are not"), "attn.q_rot", only("k")),
        (
            "positions_off_by_one",
            N_("positions count from 1, not from 0"),
            "attn.q_rot",
            lambda f, t: f.but(positions=counted_from(1, 1)),
        ),
        (
            "query_positions_off_by_one",
            N_("the queries’ positions are off by one: they count from 1"),
            "attn.q_rot",
            lambda f, t: f.but(positions=counted_from(1, 0)),
        ),
        (
            "key_positions_off_by_one",
            N_("the keys’ positions are off by one: they count from 1"),
            "attn.k_rot",
            lambda f, t: f.but(positions=counted_from(0, 1)),
        ),
        (
            "frequencies_half",
            N_("the frequencies fall half as fast: θ^(−i/d), not θ^(−2i/d)"),
            "attn.q_rot",
            steps(lambda i, c: i / c.d_head),
        ),
        (
            "frequencies_double",
            N_("the frequencies fall twice as fast: θ^(−4i/d), not θ^(−2i/d)"),
            "attn.q_rot",
            steps(lambda i, c: 4 * i / c.d_head),
        ),
        (
            "frequencies_of_model",
            N_("the frequencies fall by the width of the model: θ^(−2i/D)"),
            "attn.q_rot",
            steps(lambda i, c: 2 * i / c.d_model),
        ),
        (
            "frequencies_from_one",
            N_("the pairs of the frequencies count from 1: θ^(−2(i + 1)/d)"),
            "attn.q_rot",
            steps(lambda i, c: 2 * (i + 1) / c.d_head),
        ),
        (
            "frequencies_rising",
            N_("the frequencies grow where they should fall: θ^(2i/d)"),
            "attn.q_rot",
            steps(lambda i, c: -2 * i / c.d_head),
        ),
    ):
        yield Slip(name, words, place, ("attn.z",), change, HAS.get(name, lambda config: True))
    for theta, words in THETAS.items():
        yield Slip(f"theta_{theta:.0f}", words, "attn.q_rot", ("attn.z",), other_theta(theta))
