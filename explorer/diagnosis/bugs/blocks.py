"""Bugs in the dataflow of a block, and before and after all blocks."""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from explorer.diagnosis.bugs.norms_and_feed_forward import NORM_LEFT_OUT, change_norm_pieces
from explorer.diagnosis.reference_formulas import OUTPUT, PARALLEL, POST, PRE, BlockDataflow, KnownBug, Value
from explorer.translations import N_


def block_bug(name: str, text: str, *placements: str, **values: Value) -> KnownBug:
    """Return the bug that blocks of these placements of norms ("pre" if none) have these values, the earliest first."""
    first_tap = next(iter(values))
    read_by_feed_forward = "second_norm_input", "ffn_input"
    return KnownBug(
        name,
        text,
        first_tap,
        read_by_feed_forward if first_tap in read_by_feed_forward else (first_tap,),
        lambda formulas, tap: replace(formulas, dataflow=replace(formulas.dataflow, **values)),
        lambda config: config.norm_placement in (placements or ("pre",)),
    )


def dataflow_values(dataflow: BlockDataflow, first: str = "attn_input") -> dict[str, Value]:
    """Return a dataflow's values by name, one of them first, without the block's input."""
    names = first, "attn_input", "first_norm_input", "second_norm_input", "ffn_input", "block_output"
    return {name: getattr(dataflow, name) for name in names}


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

BLOCK_BUGS = (
    block_bug(
        "norm_after",
        N_("the norms come after the additions, not before the sublayers"),
        "pre",
        "parallel",
        **dataflow_values(POST),
    ),
    block_bug(
        "norm_of_output",
        N_("what a sublayer gives out is normalised, not what it reads"),
        "pre",
        "parallel",
        **dataflow_values(OUTPUT),
    ),
    block_bug(
        "attention_norm_of_output",
        N_("what the attention gives out is normalised, not what it reads"),
        attn_input=lambda b: b.x,
        second_norm_input=lambda b: b.x + b.n1(b.a),
    ),
    block_bug(
        "attention_norm_of_sum",
        N_("the attention’s norm comes after the addition, not before the sublayer"),
        attn_input=lambda b: b.x,
        second_norm_input=lambda b: b.n1(b.x + b.a),
    ),
    block_bug(
        "feed_forward_norm_of_output",
        N_("what the feed-forward gives out is normalised, not what it reads"),
        ffn_input=lambda b: b.x + b.a,
        second_norm_input=lambda b: b.f,
        block_output=lambda b: b.x + b.a + b.n2(b.f),
    ),
    block_bug(
        "feed_forward_norm_of_sum",
        N_("the feed-forward’s norm comes after the addition, not before the sublayer"),
        ffn_input=lambda b: b.x + b.a,
        second_norm_input=lambda b: b.x + b.a + b.f,
        block_output=lambda b: b.n2(b.x + b.a + b.f),
    ),
    block_bug(
        "feed_forward_of_sum",
        N_("the stream is added to what the feed-forward reads, not to what it gives out"),
        ffn_input=lambda b: b.n2(b.m) + b.m,
        block_output=lambda b: b.f,
    ),
    block_bug("attention_twice", N_("the attention is applied twice"), second_norm_input=lambda b: b.x + b.attend(b.a)),
    block_bug("feed_forward_twice", N_("the feed-forward is applied twice"), block_output=lambda b: b.m + b.feed(b.f)),
    block_bug("block_twice", N_("the block is applied twice"), block_output=lambda b: b.apply_block(b.m + b.f)),
    block_bug(
        "norm_before",
        N_("the norms come before the sublayers, not after the additions"),
        "post",
        "output",
        **dataflow_values(PRE),
    ),
    block_bug(
        "norm_of_output_alone",
        N_("what a sublayer gives out is normalised, not the sum"),
        "post",
        **dataflow_values(OUTPUT, "first_norm_input"),
    ),
    block_bug(
        "norm_of_sum",
        N_("the sum is normalised, not what a sublayer gives out"),
        "output",
        **dataflow_values(POST, "ffn_input"),
    ),
    block_bug(
        "parallel",
        N_("both sublayers of a block read the stream that enters it"),
        **dataflow_values(PARALLEL, "second_norm_input"),
    ),
    block_bug(
        "serial",
        N_("the feed-forward reads what attention has added to"),
        "parallel",
        **dataflow_values(PRE, "ffn_input"),
    ),
    block_bug("shared_norm", N_("the feed-forward reads what the attention read"), "pre", "parallel", **SHARED),
    block_bug("first_norm_twice", N_("the first norm of the block is used twice"), ffn_input=lambda b: b.n1(b.m)),
    block_bug(
        "first_norm_twice_after",
        N_("the first norm of the block is used twice"),
        "post",
        block_output=lambda b: b.n1(b.m),
    ),
    block_bug("norms_swapped", N_("the two norms of the block are swapped"), **SWAPPED),
    block_bug(
        "normed_stream_before_attention",
        N_("what attention gives out is added to the normalised stream, not to the stream"),
        **NORMED_BEFORE_ATTENTION,
    ),
    block_bug(
        "normed_stream_before_feed_forward",
        N_("what feed-forward gives out is added to the normalised stream, not to the stream"),
        **NORMED_BEFORE_FEED_FORWARD,
    ),
    block_bug(
        "normed_stream",
        N_("what sublayers give out is added to the normalised stream"),
        **NORMED_BEFORE_ATTENTION,
        **NORMED_BEFORE_FEED_FORWARD,
    ),
    block_bug("no_residual_of_attention", N_("the stream is not added to what attention gives out"), **ATTENTION_ALONE),
    block_bug(
        "no_residual_of_feed_forward",
        N_("the stream is not added to what feed-forward gives out"),
        **FEED_FORWARD_ALONE,
    ),
    block_bug(
        "no_residuals",
        N_("the stream is never added to what sublayers give out"),
        **ATTENTION_ALONE,
        **FEED_FORWARD_ALONE,
    ),
    block_bug(
        "no_residual_of_attention_after",
        N_("the stream is not added to what attention gives out"),
        "post",
        first_norm_input=lambda b: b.a,
        ffn_input=lambda b: b.n1(b.a),
        second_norm_input=lambda b: b.n1(b.a) + b.f,
    ),
    block_bug(
        "no_residual_of_feed_forward_after",
        N_("the stream is not added to what feed-forward gives out"),
        "post",
        second_norm_input=lambda b: b.f,
    ),
    block_bug("attention_not_added", N_("what attention gives out is not added"), second_norm_input=lambda b: b.x),
    block_bug("feed_forward_not_added", N_("what feed-forward gives out is not added"), block_output=lambda b: b.m),
    block_bug(
        "stream_from_entry",
        N_("what feed-forward gives out is added to the stream that enters the block"),
        block_output=lambda b: b.x + b.f,
    ),
    block_bug(
        "stream_twice",
        N_("the stream is added twice before the feed-forward’s output"),
        block_output=lambda b: b.m + b.m + b.f,
    ),
    block_bug(
        "entry_twice",
        N_("the stream that enters the block is added to what leaves it, once too often"),
        block_output=lambda b: b.x + b.m + b.f,
    ),
    block_bug("feed_forward_first", N_("the feed-forward comes before the attention"), **FEED_FORWARD_FIRST),
    block_bug("block_skipped", N_("the block is skipped: what enters it leaves it"), block_output=lambda b: b.x),
)


def change_position_table(change: Callable[[Tensor], Tensor | None]):
    """Return a change of the formulas that changes the table of added positions, if there is one."""

    def change_formulas(formulas, tap):
        def embed(rows, table, config):
            return formulas.embed(rows, None if table is None else change(table), config)

        return replace(formulas, embed=embed)

    return change_formulas


def scale_embeddings(formulas, tap):
    """Return the formulas with token embeddings multiplied by √D."""
    embed = formulas.embed
    return replace(formulas, embed=lambda rows, table, config: embed(rows * math.sqrt(config.d_model), table, config))


EMBEDDING_AND_UNEMBEDDING_BUGS = (
    KnownBug("embedding_scaled", N_("embeddings are multiplied by √D"), "", ("embed",), scale_embeddings),
    KnownBug(
        "positions_left_out", N_("positions are not added"), "", ("embed",), change_position_table(lambda table: None)
    ),
    KnownBug(
        "added_positions_off_by_one",
        N_("positions count from 1, not from 0"),
        "",
        ("embed",),
        change_position_table(lambda table: table.roll(-1, 0)),
    ),
    KnownBug(
        "positions_in_halves",
        N_("positions are all sines and then all cosines, which should alternate"),
        "",
        ("embed",),
        change_position_table(lambda table: torch.cat((table[:, 0::2], table[:, 1::2]), -1)),
        lambda config: config.position == "sinusoidal",
    ),
    KnownBug(
        "final_norm_missing", N_("the final norm is missing"), "", ("final_norm",), change_norm_pieces(NORM_LEFT_OUT)
    ),
    KnownBug(
        "logits_softmaxed",
        N_("a softmax makes probabilities of the logits"),
        "",
        ("logits",),
        lambda formulas, tap: replace(formulas, output=lambda logits: logits.softmax(-1)),
    ),
    KnownBug(
        "logits_log_softmaxed",
        N_("a log-softmax is taken of the logits"),
        "",
        ("logits",),
        lambda formulas, tap: replace(formulas, output=lambda logits: logits.log_softmax(-1)),
    ),
)
