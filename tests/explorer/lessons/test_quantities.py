"""Quantities of lessons, compared with values computed directly from the trace."""

import math

import numpy as np
import pytest

from explorer.lessons.quantities import MEASURES, QUANTITIES, parse_condition, parse_quantity
from explorer.lessons.yaml_blocks import parse_yaml_mapping
from tests.subtest_loops import subtest_each

from .conftest import TEACHING


def quantity_from_text(text: str):
    return parse_quantity(parse_yaml_mapping(text, 1), 1)


def softmax(logits):
    powers = np.exp(logits.astype(np.float64) - logits.max())
    return powers / powers.sum()


def expected_value(trace, name: str):
    """Return the value of a quantity at the last token, layer 0, head 0."""
    logits, last = trace["logits"][8], 8
    p = softmax(logits)
    the_id = trace.vocabulary.index(" the")
    colder = np.sort(logits)[::-1][:40].astype(np.float64) / 0.8
    table = trace.weights["token_embedding.weight"].astype(np.float64)
    cat, dog = (table[trace.vocabulary.index(word)] for word in (" cat", " dog"))
    pattern = trace.stack("blocks.*.attn.pattern")
    before = pattern[:, :, range(1, 9), range(8)].mean(-1)
    x = trace["blocks.0.resid_post"][last].astype(np.float64)
    texts = [-math.log(softmax(trace["logits"][i])[token]) for i, token in enumerate(trace.token_ids[1:])]
    return {
        "number": 3,
        "probability": p[the_id],
        "chance": softmax(colder)[list(np.argsort(-logits)).index(the_id)],
        "logit": logits[the_id],
        "surprisal": -math.log2(p[the_id]),
        "rank": (p > p[the_id]).sum() + 1,
        "entropy": -(p * np.log2(p)).sum(),
        "candidates": 40,
        "score": trace["blocks.0.attn.scores"][0, 8, 7],
        "weight": trace["blocks.0.attn.pattern"][0, 8, 7],
        "head_score": before[0, 0],
        "most_head_score": before.max(),
        "heads_above": (before >= 0.5).sum(),
        "norm": math.sqrt((x**2).sum()),
        "rms": math.sqrt((x**2).mean()),
        "element": x[0],
        "positive": (x > 0).mean(),
        "cosine": cat @ dog / math.sqrt((cat @ cat) * (dog @ dog)),
        "tokens": 9,
        "loss": np.mean(texts),
        "mean_surprisal": np.mean(texts) / np.log(2),
        "position_share": 0,
        "parameters": 6 * 4 * 192 * 192,
        "size": 192,
        "ln_vocabulary": math.log(4096),
    }[name]


ARGUMENTS = {
    "number": "value: 3",
    **dict.fromkeys(("probability", "chance", "logit", "surprisal", "rank"), 'token: " the"'),
    "head_score": "score: previous_token",
    "most_head_score": "score: previous_token",
    "heads_above": "score: previous_token, least: 0.5",
    "cosine": 'a: " cat", b: " dog"',
    "parameters": "part: attention",
    "size": "name: d_model",
}


@subtest_each("name", [name for name in MEASURES if not name.endswith("_adds")])
def test_quantity_matches_trace(plain_context, name):
    arguments = ARGUMENTS.get(name, "")
    value = quantity_from_text(f"{{of: {name}{', ' * bool(arguments)}{arguments}}}").evaluate(plain_context)
    assert value == pytest.approx(expected_value(plain_context.trace, name), rel=1e-5)


def test_contributions_sum_to_logit(plain_context):
    config = plain_context.trace.config
    heads = [
        quantity_from_text(f"{{of: head_adds, rank: 1, layer: {i}, head: {j}}}").evaluate(plain_context)
        for i in range(6)
        for j in range(6)
    ]
    layers = [
        quantity_from_text(f"{{of: feed_forward_adds, rank: 1, layer: {i}}}").evaluate(plain_context) for i in range(6)
    ]
    assert len(heads) == config.num_layers * config.num_heads
    whole = quantity_from_text("{of: logit, rank: 1}").evaluate(plain_context)
    assert abs(sum(heads) + sum(layers) - whole) < abs(whole)  # the token's embedding adds the rest
    assert max(map(abs, heads)) > 0.1


@pytest.mark.parametrize(("text", "value"), [("sum", 12), ("difference", 6), ("product", 27), ("ratio", 3)])
def test_arithmetic_quantities(plain_context, text, value):
    assert quantity_from_text(f"{{of: {text}, a: {{of: tokens}}, b: 3}}").evaluate(plain_context) == value


def test_arguments_override_step_state(plain_context):
    pattern = plain_context.trace["blocks.1.attn.pattern"]
    assert quantity_from_text("{of: weight, layer: 1, head: 2, query: 5, key: 3}").evaluate(
        plain_context
    ) == pytest.approx(pattern[2, 5, 3])
    cold, hot = (
        quantity_from_text(f"{{of: chance, rank: 1, temperature: {t}}}").evaluate(plain_context) for t in (0.2, 2)
    )
    assert cold > hot
    assert quantity_from_text('{of: tokens, text: "One two"}').evaluate(plain_context) == 2
    ablated = quantity_from_text("{of: probability, rank: 1, edits: blocks.0.attn.z*zero}").evaluate(plain_context)
    assert ablated != pytest.approx(quantity_from_text("{of: probability, rank: 1}").evaluate(plain_context))
    assert quantity_from_text("{of: weight}").evaluate(plain_context) == pytest.approx(
        plain_context.trace["blocks.0.attn.pattern"][0, 8, 7]
    )


def test_other_text_is_evaluated_at_its_end(plain_context):
    for text in ("Once upon a", "Once upon a time there was a fox who wanted the moon"):
        value = quantity_from_text(f'{{of: probability, rank: 1, text: "{text}"}}').evaluate(plain_context)
        trace = plain_context.replace({"text": text}).trace
        assert value == pytest.approx(softmax(trace["logits"][-1]).max())


@subtest_each(
    ("text", "holds"),
    [
        ("more: [{of: tokens}, 8]", True),
        ("more: [{of: tokens}, 9]", False),
        ("less: [{of: tokens}, 9]", False),
        ("less: [{of: tokens}, 10]", True),
        ("about: [{of: tokens}, 10, 1]", True),
        ("about: [{of: tokens}, 10, 0.5]", False),
        ('token: " the"', True),
        ('token: " a"', False),
        ('token: {is: " the", rank: 2}', False),
        ("all: [{more: [2, 1]}, {less: [1, 2]}]", True),
        ("all: [{more: [2, 1]}, {less: [2, 1]}]", False),
        ("any: [{more: [1, 2]}, {less: [1, 2]}]", True),
        ("not: {more: [1, 2]}", True),
    ],
)
def test_conditions_hold_as_expected(plain_context, text, holds):
    assert parse_condition(parse_yaml_mapping(text, 1), 1).holds(plain_context) is holds


def test_every_quantity_is_documented():
    page = TEACHING.read_text(encoding="utf-8")
    assert [name for name in QUANTITIES if f"`{name}`" not in page] == []
