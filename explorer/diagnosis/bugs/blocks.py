"""Bugs in the dataflow of a block: inputs of the sublayers, and terms of the sums."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from explorer.diagnosis.block_dataflow import OUTPUT, PARALLEL, POST, PRE, BlockDataflow, Value
from explorer.diagnosis.bugs.bug import KnownBug
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
