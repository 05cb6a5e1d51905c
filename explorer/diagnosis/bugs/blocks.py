"""Bugs in the wiring of a block: inputs of the sublayers, and terms of the sums."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from explorer.diagnosis.bugs.bug import KnownBug
from explorer.diagnosis.wiring import OUTPUT, PARALLEL, POST, PRE, BlockWiring, Value
from explorer.translations import N_
from model.config import ModelConfig

PRE_ONLY, POST_ONLY = ("pre",), ("post",)


def wiring_values(wiring: BlockWiring) -> dict[str, Value]:
    return {name: getattr(wiring, name) for name in ("reads", "first", "middle", "then", "leaves")}


SHARED = {"then": lambda b: b.n1(b.x), "leaves": lambda b: b.x + b.a + b.f}
NORMED_BEFORE_ATTENTION = {"middle": lambda b: b.n1(b.x) + b.a}
NORMED_BEFORE_FEED_FORWARD = {"leaves": lambda b: b.n2(b.m) + b.f}
ATTENTION_ALONE, FEED_FORWARD_ALONE = {"middle": lambda b: b.a}, {"leaves": lambda b: b.f}
SWAPPED = {
    "reads": lambda b: b.n2(b.x),
    "first": lambda b: b.x + b.a,
    "middle": lambda b: b.x,
    "then": lambda b: b.n1(b.x + b.a),
    "leaves": lambda b: b.x + b.a + b.f,
}
FEED_FORWARD_FIRST = {
    "reads": lambda b: b.n1(b.x + b.f),
    "first": lambda b: b.x + b.f,
    "middle": lambda b: b.x,
    "then": lambda b: b.n2(b.x),
    "leaves": lambda b: b.x + b.f + b.a,
}

# name, words, place, changed values, of which placements of norms
WIRING_VARIANTS: tuple[tuple[str, str, str, Mapping[str, Value], tuple[str, ...]], ...] = (
    (
        "norm_after",
        N_("the norms come after the additions, not before the sublayers"),
        "reads",
        wiring_values(POST),
        ("pre", "parallel"),
    ),
    (
        "norm_of_output",
        N_("what a sublayer gives out is normalised, not what it reads"),
        "reads",
        wiring_values(OUTPUT),
        ("pre", "parallel"),
    ),
    (
        "attention_norm_of_output",
        N_("what the attention gives out is normalised, not what it reads"),
        "reads",
        {"reads": lambda b: b.x, "middle": lambda b: b.x + b.n1(b.a)},
        PRE_ONLY,
    ),
    (
        "attention_norm_of_sum",
        N_("the attention’s norm comes after the addition, not before the sublayer"),
        "reads",
        {"reads": lambda b: b.x, "middle": lambda b: b.n1(b.x + b.a)},
        PRE_ONLY,
    ),
    (
        "feed_forward_norm_of_output",
        N_("what the feed-forward gives out is normalised, not what it reads"),
        "then",
        {"middle": lambda b: b.f, "then": lambda b: b.x + b.a, "leaves": lambda b: b.x + b.a + b.n2(b.f)},
        PRE_ONLY,
    ),
    (
        "feed_forward_norm_of_sum",
        N_("the feed-forward’s norm comes after the addition, not before the sublayer"),
        "then",
        {"middle": lambda b: b.x + b.a + b.f, "then": lambda b: b.x + b.a, "leaves": lambda b: b.n2(b.x + b.a + b.f)},
        PRE_ONLY,
    ),
    (
        "feed_forward_of_sum",
        N_("the stream is added to what the feed-forward reads, not to what it gives out"),
        "then",
        {"then": lambda b: b.n2(b.m) + b.m, "leaves": lambda b: b.f},
        PRE_ONLY,
    ),
    (
        "attention_twice",
        N_("the attention is applied twice"),
        "middle",
        {"middle": lambda b: b.x + b.attend(b.a)},
        PRE_ONLY,
    ),
    (
        "feed_forward_twice",
        N_("the feed-forward is applied twice"),
        "leaves",
        {"leaves": lambda b: b.m + b.feed(b.f)},
        PRE_ONLY,
    ),
    (
        "block_twice",
        N_("the block is applied twice"),
        "leaves",
        {"leaves": lambda b: b.apply_block(b.m + b.f)},
        PRE_ONLY,
    ),
    (
        "norm_before",
        N_("the norms come before the sublayers, not after the additions"),
        "reads",
        wiring_values(PRE),
        ("post", "output"),
    ),
    (
        "norm_of_output_alone",
        N_("what a sublayer gives out is normalised, not the sum"),
        "first",
        wiring_values(OUTPUT),
        POST_ONLY,
    ),
    (
        "norm_of_sum",
        N_("the sum is normalised, not what a sublayer gives out"),
        "then",
        wiring_values(POST),
        ("output",),
    ),
    (
        "parallel",
        N_("both sublayers of a block read the stream that enters it"),
        "middle",
        wiring_values(PARALLEL),
        PRE_ONLY,
    ),
    ("serial", N_("the feed-forward reads what attention has added to"), "then", wiring_values(PRE), ("parallel",)),
    ("shared_norm", N_("the feed-forward reads what the attention read"), "then", SHARED, ("pre", "parallel")),
    (
        "first_norm_twice",
        N_("the first norm of the block is used twice"),
        "then",
        {"then": lambda b: b.n1(b.m)},
        PRE_ONLY,
    ),
    (
        "first_norm_twice_after",
        N_("the first norm of the block is used twice"),
        "leaves",
        {"leaves": lambda b: b.n1(b.m)},
        POST_ONLY,
    ),
    ("norms_swapped", N_("the two norms of the block are swapped"), "reads", SWAPPED, PRE_ONLY),
    (
        "normed_stream_before_attention",
        N_("what attention gives out is added to the normalised stream, not to the stream"),
        "middle",
        NORMED_BEFORE_ATTENTION,
        PRE_ONLY,
    ),
    (
        "normed_stream_before_feed_forward",
        N_("what feed-forward gives out is added to the normalised stream, not to the stream"),
        "leaves",
        NORMED_BEFORE_FEED_FORWARD,
        PRE_ONLY,
    ),
    (
        "normed_stream",
        N_("what sublayers give out is added to the normalised stream"),
        "middle",
        NORMED_BEFORE_ATTENTION | NORMED_BEFORE_FEED_FORWARD,
        PRE_ONLY,
    ),
    (
        "no_residual_of_attention",
        N_("the stream is not added to what attention gives out"),
        "middle",
        ATTENTION_ALONE,
        PRE_ONLY,
    ),
    (
        "no_residual_of_feed_forward",
        N_("the stream is not added to what feed-forward gives out"),
        "leaves",
        FEED_FORWARD_ALONE,
        PRE_ONLY,
    ),
    (
        "no_residuals",
        N_("the stream is never added to what sublayers give out"),
        "middle",
        ATTENTION_ALONE | FEED_FORWARD_ALONE,
        PRE_ONLY,
    ),
    (
        "no_residual_of_attention_after",
        N_("the stream is not added to what attention gives out"),
        "first",
        {"first": lambda b: b.a, "then": lambda b: b.n1(b.a), "middle": lambda b: b.n1(b.a) + b.f},
        POST_ONLY,
    ),
    (
        "no_residual_of_feed_forward_after",
        N_("the stream is not added to what feed-forward gives out"),
        "middle",
        {"middle": lambda b: b.f},
        POST_ONLY,
    ),
    ("attention_not_added", N_("what attention gives out is not added"), "middle", {"middle": lambda b: b.x}, PRE_ONLY),
    (
        "feed_forward_not_added",
        N_("what feed-forward gives out is not added"),
        "leaves",
        {"leaves": lambda b: b.m},
        PRE_ONLY,
    ),
    (
        "stream_from_entry",
        N_("what feed-forward gives out is added to the stream that enters the block"),
        "leaves",
        {"leaves": lambda b: b.x + b.f},
        PRE_ONLY,
    ),
    (
        "stream_twice",
        N_("the stream is added twice before the feed-forward’s output"),
        "leaves",
        {"leaves": lambda b: b.m + b.m + b.f},
        PRE_ONLY,
    ),
    (
        "entry_twice",
        N_("the stream that enters the block is added to what leaves it, once too often"),
        "leaves",
        {"leaves": lambda b: b.x + b.m + b.f},
        PRE_ONLY,
    ),
    ("feed_forward_first", N_("the feed-forward comes before the attention"), "reads", FEED_FORWARD_FIRST, PRE_ONLY),
    (
        "block_skipped",
        N_("the block is skipped: what enters it leaves it"),
        "leaves",
        {"leaves": lambda b: b.x},
        PRE_ONLY,
    ),
)


def block_bugs() -> Iterator[KnownBug]:
    for name, text, first_tap, changed, placements in WIRING_VARIANTS:

        def change(formulas, tap, changed=changed):
            return formulas.replace(wiring=replace(formulas.wiring, **changed))

        def has_placement(config: ModelConfig, placements=placements) -> bool:
            return config.norm_placement in placements

        shows = ("middle", "then") if first_tap in ("middle", "then") else (first_tap,)
        yield KnownBug(name, text, first_tap, shows, change, has_placement)
