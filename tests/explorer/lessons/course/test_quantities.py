"""Each quantity is what the run has, worked out by hand."""

import math

import numpy as np
import pytest

from explorer.lessons.course.blocks import fields
from explorer.lessons.course.conditions import condition
from explorer.lessons.course.measures import MEASURES
from explorer.lessons.course.quantities import QUANTITIES, quantity


def of(text: str):
    return quantity(fields(text, 1), 1)


def softmax(logits):
    powers = np.exp(logits.astype(np.float64) - logits.max())
    return powers / powers.sum()


def by_hand(trace, name: str):
    """What `name` is in the row of the last token, layer 0, head 0."""
    logits, last = trace["logits"][8], 8
    p = softmax(logits)
    the = trace.vocabulary.index(" the")
    colder = np.sort(logits)[::-1][:40].astype(np.float64) / 0.8
    table = trace.weights["token_embedding.weight"].astype(np.float64)
    cat, dog = (table[trace.vocabulary.index(word)] for word in (" cat", " dog"))
    pattern = trace.stack("blocks.*.attn.pattern")
    before = pattern[:, :, range(1, 9), range(8)].mean(-1)
    x = trace["blocks.0.resid_post"][last].astype(np.float64)
    texts = [-math.log(softmax(trace["logits"][i])[token]) for i, token in enumerate(trace.token_ids[1:])]
    return {
        "number": 3,
        "probability": p[the],
        "chance": softmax(colder)[list(np.argsort(-logits)).index(the)],
        "logit": logits[the],
        "surprisal": -math.log2(p[the]),
        "rank": (p > p[the]).sum() + 1,
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


@pytest.mark.parametrize("name", [name for name in MEASURES if not name.endswith("_adds")])
def test_a_quantity_is_what_the_run_has(plain, name):
    arguments = ARGUMENTS.get(name, "")
    found = of(f"{{of: {name}{', ' * bool(arguments)}{arguments}}}").at(plain)
    assert found == pytest.approx(by_hand(plain.trace, name), rel=1e-5)


def test_what_all_parts_add_is_the_logit(plain):
    config = plain.trace.config
    heads = [of(f"{{of: head_adds, rank: 1, layer: {i}, head: {j}}}").at(plain) for i in range(6) for j in range(6)]
    layers = [of(f"{{of: feed_forward_adds, rank: 1, layer: {i}}}").at(plain) for i in range(6)]
    assert len(heads) == config.num_layers * config.num_heads
    whole = of("{of: logit, rank: 1}").at(plain)
    assert abs(sum(heads) + sum(layers) - whole) < abs(whole)  # but for what the token itself adds
    assert max(map(abs, heads)) > 0.1


@pytest.mark.parametrize(("text", "value"), [("sum", 12), ("difference", 6), ("product", 27), ("ratio", 3)])
def test_arithmetic(plain, text, value):
    assert of(f"{{of: {text}, a: {{of: tokens}}, b: 3}}").at(plain) == value


def test_names_of_the_address_take_the_place_of_the_steps(plain):
    pattern = plain.trace["blocks.1.attn.pattern"]
    assert of("{of: weight, layer: 1, head: 2, query: 5, key: 3}").at(plain) == pytest.approx(pattern[2, 5, 3])
    cold, hot = (of(f"{{of: chance, rank: 1, temperature: {t}}}").at(plain) for t in (0.2, 2))
    assert cold > hot
    assert of('{of: tokens, text: "One two"}').at(plain) == 2
    silenced = of("{of: probability, rank: 1, edits: blocks.0.attn.z*zero}").at(plain)
    assert silenced != pytest.approx(of("{of: probability, rank: 1}").at(plain))
    assert of("{of: weight}").at(plain) == pytest.approx(plain.trace["blocks.0.attn.pattern"][0, 8, 7])


def test_another_text_is_looked_at_from_its_end(plain):
    longer = of('{of: probability, rank: 1, text: "Once upon a"}').at(plain)
    trace = plain.but({"text": "Once upon a"}).trace
    assert longer == pytest.approx(softmax(trace["logits"][-1]).max())


@pytest.mark.parametrize(
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
def test_conditions(plain, text, holds):
    assert condition(fields(text, 1), 1).holds(plain) is holds


def test_every_quantity_is_told_in_the_formats_page():
    from explorer.lessons.course.shelf import BUNDLED

    page = (BUNDLED / "README.md").read_text(encoding="utf-8")
    assert [name for name in QUANTITIES if f"`{name}`" not in page] == []
