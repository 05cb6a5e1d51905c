"""Slips in the order of a block: what reads what, and what is added to what; and before and after the blocks."""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from explorer.language import N_
from explorer.own_module.formulas import PRE_NORM, Wiring
from explorer.own_module.slips.slip import Slip

NORM_AFTER = Wiring(
    reads=lambda x, a, f, m, n1, n2: x,
    middle=lambda x, a, f, m, n1, n2: n1(x + a) + f,
    then=lambda x, a, f, m, n1, n2: n1(x + a),
    leaves=lambda x, a, f, m, n1, n2: n2(n1(x + a) + f),
)
OUTPUT_NORM = Wiring(
    reads=lambda x, a, f, m, n1, n2: x,
    middle=lambda x, a, f, m, n1, n2: f,
    then=lambda x, a, f, m, n1, n2: x + n1(a),
    leaves=lambda x, a, f, m, n1, n2: x + n1(a) + n2(f),
)
PARALLEL = replace(PRE_NORM, middle=lambda x, a, f, m, n1, n2: x, leaves=lambda x, a, f, m, n1, n2: x + a + f)
SHARED = Wiring(
    reads=PRE_NORM.reads,
    middle=PRE_NORM.middle,
    then=lambda x, a, f, m, n1, n2: n1(x),
    leaves=lambda x, a, f, m, n1, n2: x + a + f,
)
NORMED_STREAM_1 = replace(PRE_NORM, middle=lambda x, a, f, m, n1, n2: n1(x) + a)
NORMED_STREAM_2 = replace(PRE_NORM, leaves=lambda x, a, f, m, n1, n2: n2(m) + f)
NORMED_STREAM = replace(NORMED_STREAM_1, leaves=NORMED_STREAM_2.leaves)
NO_RESIDUAL_1 = replace(PRE_NORM, middle=lambda x, a, f, m, n1, n2: a)
NO_RESIDUAL_2 = replace(PRE_NORM, leaves=lambda x, a, f, m, n1, n2: f)
NO_RESIDUAL = replace(NO_RESIDUAL_1, leaves=NO_RESIDUAL_2.leaves)
NO_ATTENTION = replace(PRE_NORM, middle=lambda x, a, f, m, n1, n2: x)
FROM_ENTRY = replace(PRE_NORM, leaves=lambda x, a, f, m, n1, n2: x + f)
SAME_NORM = replace(PRE_NORM, then=lambda x, a, f, m, n1, n2: n1(m))

WIRINGS = (
    ("norm_after", N_("the norms come after the additions, not before the sublayers"), "attn_norm", NORM_AFTER),
    ("norm_of_output", N_("what a sublayer gives out is normalised, not what it reads"), "attn_norm", OUTPUT_NORM),
    ("parallel", N_("both sublayers of a block read the stream that enters it"), "resid_mid", PARALLEL),
    ("shared_norm", N_("the feed-forward reads what the attention read"), "ffn_norm", SHARED),
    ("first_norm_twice", N_("the first norm of the block is used twice"), "ffn_norm", SAME_NORM),
    (
        "normed_stream_before_attention",
        N_("what attention gives out is added to the normalised stream, not to the stream"),
        "resid_mid",
        NORMED_STREAM_1,
    ),
    (
        "normed_stream_before_feed_forward",
        N_("what feed-forward gives out is added to the normalised stream, not to the stream"),
        "resid_post",
        NORMED_STREAM_2,
    ),
    ("normed_stream", N_("what sublayers give out is added to the normalised stream"), "resid_mid", NORMED_STREAM),
    ("no_residual_of_attention", N_("the stream is not added to what attention gives out"), "resid_mid", NO_RESIDUAL_1),
    (
        "no_residual_of_feed_forward",
        N_("the stream is not added to what feed-forward gives out"),
        "resid_post",
        NO_RESIDUAL_2,
    ),
    ("no_residuals", N_("the stream is never added to what sublayers give out"), "resid_mid", NO_RESIDUAL),
    ("attention_not_added", N_("what attention gives out is not added"), "resid_mid", NO_ATTENTION),
    (
        "stream_from_entry",
        N_("what feed-forward gives out is added to the stream that enters the block"),
        "resid_post",
        FROM_ENTRY,
    ),
)
SHOWS = {"attn_norm": ("attn_norm",), "resid_mid": ("resid_mid", "ffn_norm"), "ffn_norm": ("ffn_norm",)}


def block_slips() -> Iterator[Slip]:
    for name, words, place, wiring in WIRINGS:

        def change(formulas, tap, wiring=wiring):
            return formulas.but(wiring=wiring)

        yield Slip(name, words, place, SHOWS.get(place, ("resid_post",)), change)


def end_slips() -> Iterator[Slip]:
    """Of what is before and after all blocks."""

    def scaled(factor):
        return lambda formulas, tap: formulas.but(
            embed=lambda rows, table, config: formulas.embed(rows * factor(config), table, config)
        )

    def without_positions(formulas, tap):
        return formulas.but(embed=lambda rows, table, config: formulas.embed(rows, None, config))

    def moved(formulas, tap):
        def embed(rows, table, config):
            return formulas.embed(rows, None if table is None else table.roll(-1, 0), config)

        return formulas.but(embed=embed)

    def no_final_norm(formulas, tap):
        return formulas.with_norm("final_norm", lambda x, gain, shift, eps: x)

    yield Slip(
        "embedding_scaled",
        N_("embeddings are multiplied by √D"),
        "",
        ("embed",),
        scaled(lambda c: math.sqrt(c.d_model)),
    )
    yield Slip("positions_left_out", N_("positions are not added"), "", ("embed",), without_positions)
    yield Slip("added_positions_off_by_one", N_("positions count from 1, not from 0"), "", ("embed",), moved)
    yield Slip("final_norm_missing", N_("the final norm is missing"), "", ("final_norm",), no_final_norm)
    for name, words, given in (
        ("logits_softmaxed", N_("a softmax makes probabilities of the logits"), lambda x: torch.softmax(x, -1)),
        ("logits_log_softmaxed", N_("a log-softmax is taken of the logits"), lambda x: torch.log_softmax(x, -1)),
    ):

        def change(formulas, tap, given=given):
            return formulas.but(given=given)

        yield Slip(name, words, "", ("logits",), change)
