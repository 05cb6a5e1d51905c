"""Bugs in the dataflow of a block, and before and after all blocks."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch

from explorer.diagnosis.reference_formulas import (
    OUTPUT,
    PARALLEL,
    POST,
    PRE,
    BlockDataflow,
    KnownBug,
    NormFormulaPieces,
    Value,
    identity,
)
from explorer.translations import N_
from model.config import ModelConfig

PRE_ONLY, POST_ONLY = ("pre",), ("post",)


def dataflow_values(dataflow: BlockDataflow) -> dict[str, Value]:
    """Return a dataflow's values by name, without the block's input."""
    return {
        name: getattr(dataflow, name)
        for name in ("attn_input", "first_norm_input", "second_norm_input", "ffn_input", "block_output")
    }


SHARED = {"ffn_input": lambda b: b.n1(b.x), "block_output": lambda b: b.x + b.a + b.f}
NORMED_BEFORE_ATTENTION = {"second_norm_input": lambda b: b.n1(b.x) + b.a}
NORMED_BEFORE_FEED_FORWARD = {"block_output": lambda b: b.n2(b.m) + b.f}
ATTENTION_ALONE, FEED_FORWARD_ALONE = {"second_norm_input": lambda b: b.a}, {"block_output": lambda b: b.f}
SWAPPED = {
    "attn_input": lambda b: b.n2(b.x),
    "first_norm_input": lambda b: b.x + b.a,
    "second_norm_input": lambda b: b.x,
    "ffn_input": lambda b: b.n1(b.x + b.a),
    "block_output": lambda b: b.x + b.a + b.f,
}
FEED_FORWARD_FIRST = {
    "attn_input": lambda b: b.n1(b.x + b.f),
    "first_norm_input": lambda b: b.x + b.f,
    "second_norm_input": lambda b: b.x,
    "ffn_input": lambda b: b.n2(b.x),
    "block_output": lambda b: b.x + b.f + b.a,
}

# name, words, place, changed values, of which placements of norms
DATAFLOW_VARIANTS: tuple[tuple[str, str, str, Mapping[str, Value], tuple[str, ...]], ...] = (
    (
        "norm_after",
        N_("the norms come after the additions, not before the sublayers"),
        "attn_input",
        dataflow_values(POST),
        ("pre", "parallel"),
    ),
    (
        "norm_of_output",
        N_("what a sublayer gives out is normalised, not what it reads"),
        "attn_input",
        dataflow_values(OUTPUT),
        ("pre", "parallel"),
    ),
    (
        "attention_norm_of_output",
        N_("what the attention gives out is normalised, not what it reads"),
        "attn_input",
        {"attn_input": lambda b: b.x, "second_norm_input": lambda b: b.x + b.n1(b.a)},
        PRE_ONLY,
    ),
    (
        "attention_norm_of_sum",
        N_("the attention’s norm comes after the addition, not before the sublayer"),
        "attn_input",
        {"attn_input": lambda b: b.x, "second_norm_input": lambda b: b.n1(b.x + b.a)},
        PRE_ONLY,
    ),
    (
        "feed_forward_norm_of_output",
        N_("what the feed-forward gives out is normalised, not what it reads"),
        "ffn_input",
        {
            "second_norm_input": lambda b: b.f,
            "ffn_input": lambda b: b.x + b.a,
            "block_output": lambda b: b.x + b.a + b.n2(b.f),
        },
        PRE_ONLY,
    ),
    (
        "feed_forward_norm_of_sum",
        N_("the feed-forward’s norm comes after the addition, not before the sublayer"),
        "ffn_input",
        {
            "second_norm_input": lambda b: b.x + b.a + b.f,
            "ffn_input": lambda b: b.x + b.a,
            "block_output": lambda b: b.n2(b.x + b.a + b.f),
        },
        PRE_ONLY,
    ),
    (
        "feed_forward_of_sum",
        N_("the stream is added to what the feed-forward reads, not to what it gives out"),
        "ffn_input",
        {"ffn_input": lambda b: b.n2(b.m) + b.m, "block_output": lambda b: b.f},
        PRE_ONLY,
    ),
    (
        "attention_twice",
        N_("the attention is applied twice"),
        "second_norm_input",
        {"second_norm_input": lambda b: b.x + b.attend(b.a)},
        PRE_ONLY,
    ),
    (
        "feed_forward_twice",
        N_("the feed-forward is applied twice"),
        "block_output",
        {"block_output": lambda b: b.m + b.feed(b.f)},
        PRE_ONLY,
    ),
    (
        "block_twice",
        N_("the block is applied twice"),
        "block_output",
        {"block_output": lambda b: b.apply_block(b.m + b.f)},
        PRE_ONLY,
    ),
    (
        "norm_before",
        N_("the norms come before the sublayers, not after the additions"),
        "attn_input",
        dataflow_values(PRE),
        ("post", "output"),
    ),
    (
        "norm_of_output_alone",
        N_("what a sublayer gives out is normalised, not the sum"),
        "first_norm_input",
        dataflow_values(OUTPUT),
        POST_ONLY,
    ),
    (
        "norm_of_sum",
        N_("the sum is normalised, not what a sublayer gives out"),
        "ffn_input",
        dataflow_values(POST),
        ("output",),
    ),
    (
        "parallel",
        N_("both sublayers of a block read the stream that enters it"),
        "second_norm_input",
        dataflow_values(PARALLEL),
        PRE_ONLY,
    ),
    (
        "serial",
        N_("the feed-forward reads what attention has added to"),
        "ffn_input",
        dataflow_values(PRE),
        ("parallel",),
    ),
    ("shared_norm", N_("the feed-forward reads what the attention read"), "ffn_input", SHARED, ("pre", "parallel")),
    (
        "first_norm_twice",
        N_("the first norm of the block is used twice"),
        "ffn_input",
        {"ffn_input": lambda b: b.n1(b.m)},
        PRE_ONLY,
    ),
    (
        "first_norm_twice_after",
        N_("the first norm of the block is used twice"),
        "block_output",
        {"block_output": lambda b: b.n1(b.m)},
        POST_ONLY,
    ),
    ("norms_swapped", N_("the two norms of the block are swapped"), "attn_input", SWAPPED, PRE_ONLY),
    (
        "normed_stream_before_attention",
        N_("what attention gives out is added to the normalised stream, not to the stream"),
        "second_norm_input",
        NORMED_BEFORE_ATTENTION,
        PRE_ONLY,
    ),
    (
        "normed_stream_before_feed_forward",
        N_("what feed-forward gives out is added to the normalised stream, not to the stream"),
        "block_output",
        NORMED_BEFORE_FEED_FORWARD,
        PRE_ONLY,
    ),
    (
        "normed_stream",
        N_("what sublayers give out is added to the normalised stream"),
        "second_norm_input",
        NORMED_BEFORE_ATTENTION | NORMED_BEFORE_FEED_FORWARD,
        PRE_ONLY,
    ),
    (
        "no_residual_of_attention",
        N_("the stream is not added to what attention gives out"),
        "second_norm_input",
        ATTENTION_ALONE,
        PRE_ONLY,
    ),
    (
        "no_residual_of_feed_forward",
        N_("the stream is not added to what feed-forward gives out"),
        "block_output",
        FEED_FORWARD_ALONE,
        PRE_ONLY,
    ),
    (
        "no_residuals",
        N_("the stream is never added to what sublayers give out"),
        "second_norm_input",
        ATTENTION_ALONE | FEED_FORWARD_ALONE,
        PRE_ONLY,
    ),
    (
        "no_residual_of_attention_after",
        N_("the stream is not added to what attention gives out"),
        "first_norm_input",
        {
            "first_norm_input": lambda b: b.a,
            "ffn_input": lambda b: b.n1(b.a),
            "second_norm_input": lambda b: b.n1(b.a) + b.f,
        },
        POST_ONLY,
    ),
    (
        "no_residual_of_feed_forward_after",
        N_("the stream is not added to what feed-forward gives out"),
        "second_norm_input",
        {"second_norm_input": lambda b: b.f},
        POST_ONLY,
    ),
    (
        "attention_not_added",
        N_("what attention gives out is not added"),
        "second_norm_input",
        {"second_norm_input": lambda b: b.x},
        PRE_ONLY,
    ),
    (
        "feed_forward_not_added",
        N_("what feed-forward gives out is not added"),
        "block_output",
        {"block_output": lambda b: b.m},
        PRE_ONLY,
    ),
    (
        "stream_from_entry",
        N_("what feed-forward gives out is added to the stream that enters the block"),
        "block_output",
        {"block_output": lambda b: b.x + b.f},
        PRE_ONLY,
    ),
    (
        "stream_twice",
        N_("the stream is added twice before the feed-forward’s output"),
        "block_output",
        {"block_output": lambda b: b.m + b.m + b.f},
        PRE_ONLY,
    ),
    (
        "entry_twice",
        N_("the stream that enters the block is added to what leaves it, once too often"),
        "block_output",
        {"block_output": lambda b: b.x + b.m + b.f},
        PRE_ONLY,
    ),
    (
        "feed_forward_first",
        N_("the feed-forward comes before the attention"),
        "attn_input",
        FEED_FORWARD_FIRST,
        PRE_ONLY,
    ),
    (
        "block_skipped",
        N_("the block is skipped: what enters it leaves it"),
        "block_output",
        {"block_output": lambda b: b.x},
        PRE_ONLY,
    ),
)


def block_bugs() -> Iterator[KnownBug]:
    """Yield the known bugs of a block's dataflow."""
    for name, text, first_tap, changed, placements in DATAFLOW_VARIANTS:

        def change(formulas, tap, changed=changed):
            return formulas.replace(dataflow=replace(formulas.dataflow, **changed))

        def has_placement(config: ModelConfig, placements=placements) -> bool:
            return config.norm_placement in placements

        shows = ("second_norm_input", "ffn_input") if first_tap in ("second_norm_input", "ffn_input") else (first_tap,)
        yield KnownBug(name, text, first_tap, shows, change, has_placement)


def embedding_and_unembedding_bugs() -> Iterator[KnownBug]:
    """Yield the bugs before and after all blocks."""

    def scale_embeddings(factor):
        return lambda formulas, tap: formulas.replace(
            embed=lambda rows, table, config: formulas.embed(rows * factor(config), table, config)
        )

    def omit_positions(formulas, tap):
        return formulas.replace(embed=lambda rows, table, config: formulas.embed(rows, None, config))

    def shift_positions(formulas, tap):
        def embed(rows, table, config):
            return formulas.embed(rows, None if table is None else table.roll(-1, 0), config)

        return formulas.replace(embed=embed)

    def split_sines_and_cosines(formulas, tap):
        """Put all sines first, then all cosines, instead of alternating them."""

        def embed(rows, table, config):
            halves = None if table is None else torch.cat((table[:, 0::2], table[:, 1::2]), -1)
            return formulas.embed(rows, halves, config)

        return formulas.replace(embed=embed)

    def skip_final_norm(formulas, tap):
        return formulas.with_norm(
            "final_norm",
            NormFormulaPieces(identity, lambda y, gain, shift: y, root=lambda mean, eps: torch.ones_like(mean)),
        )

    yield KnownBug(
        "embedding_scaled",
        N_("embeddings are multiplied by √D"),
        "",
        ("embed",),
        scale_embeddings(lambda c: math.sqrt(c.d_model)),
    )
    yield KnownBug("positions_left_out", N_("positions are not added"), "", ("embed",), omit_positions)
    yield KnownBug(
        "added_positions_off_by_one", N_("positions count from 1, not from 0"), "", ("embed",), shift_positions
    )
    text = N_("positions are all sines and then all cosines, which should alternate")
    yield KnownBug(
        "positions_in_halves",
        text,
        "",
        ("embed",),
        split_sines_and_cosines,
        lambda config: config.position == "sinusoidal",
    )
    yield KnownBug("final_norm_missing", N_("the final norm is missing"), "", ("final_norm",), skip_final_norm)
    for name, text, final_step in (
        ("logits_softmaxed", N_("a softmax makes probabilities of the logits"), lambda x: torch.softmax(x, -1)),
        ("logits_log_softmaxed", N_("a log-softmax is taken of the logits"), lambda x: torch.log_softmax(x, -1)),
    ):

        def change(formulas, tap, final_step=final_step):
            return formulas.replace(output=final_step)

        yield KnownBug(name, text, "", ("logits",), change)
