import math
from functools import cache

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from explorer.analysis.divergence import jensen_shannon_distance
from explorer.analysis.parting import (
    first_difference,
    head_distance,
    next_tokens,
    pattern_distances,
    stream_distance,
    surprisal_difference,
)
from explorer.analysis.residual import stages
from explorer.state.interventions import parse_edits
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from tests.specimens import models, tokenizer

TEXTS = "the fox asked the owl", "the fox and then the owl asked the owl"


@cache
def two(style: str) -> Comparison:
    lm = models()[style]
    return Comparison.of(*(capture(lm, tokenizer().encode(text), tokenizer=tokenizer()) for text in TEXTS))


@pytest.fixture
def comparison(style) -> Comparison:
    return two(style)


def test_streams_are_apart_by_their_distance_over_the_length_of_the_others(comparison):
    found, partners = stream_distance(comparison), comparison.alignment.partners
    for row, stage in enumerate(stages(comparison.trace)):
        for position, partner in enumerate(partners):
            if partner is None:
                assert np.isnan(found[row, position])
                continue
            a, b = comparison.trace[stage.tap][position], comparison.other[stage.tap][partner]
            expected = math.dist(a.tolist(), b.tolist()) / math.hypot(*b.tolist())
            assert found[row, position] == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_heads_are_apart_over_the_keys_of_both(comparison):
    """Written out: partners are one key, and a key without one is its run's alone."""
    partners, back = comparison.alignment.partners, comparison.alignment.back
    for layer in range(2):
        mine, theirs = (run[f"blocks.{layer}.attn.pattern"].astype(float) for run in comparison.runs)
        for head in range(len(mine)):
            apart = []
            for query, there in enumerate(partners):
                if there is None:
                    continue
                keys = [("a", key) for key in range(len(partners))]
                keys += [("b", key) for key, mate in enumerate(back) if mate is None]
                p = [mine[head, query, key] if run == "a" else 0.0 for run, key in keys]
                q = [
                    theirs[head, there, key]
                    if run == "b"
                    else 0.0
                    if partners[key] is None
                    else theirs[head, there, partners[key]]
                    for run, key in keys
                ]
                assert sum(p) == pytest.approx(1, abs=1e-5) and sum(q) == pytest.approx(1, abs=1e-5)
                apart.append(float(jensen_shannon_distance(np.array(p), np.array(q))))
                assert pattern_distances(comparison, layer)[head, query] == pytest.approx(apart[-1], abs=1e-6)
            assert head_distance(comparison)[layer, head] == pytest.approx(np.mean(apart), abs=1e-6)


def test_next_tokens_and_surprisals_are_those_of_partners(comparison):
    partners = comparison.alignment.partners
    mine, theirs = next_tokens(comparison, 3)
    there = comparison.alignment.nearest(3)
    for found, run, position in ((mine, comparison.trace, 3), (theirs, comparison.other, there)):
        assert_allclose(found, torch.tensor(run["logits"][position]).softmax(-1), rtol=1e-4)
    bits = surprisal_difference(comparison)
    for position, partner in enumerate(partners):
        if not position or not partner:
            assert np.isnan(bits[position])
            continue
        each = [
            -torch.tensor(run["logits"][place - 1]).double().log_softmax(-1)[run.token_ids[place]] / math.log(2)
            for run, place in ((comparison.trace, position), (comparison.other, partner))
        ]
        assert bits[position] == pytest.approx(float(each[0] - each[1]), abs=1e-4)


@pytest.mark.parametrize(
    ("edits", "tap"),
    [
        ("blocks.1.attn.z.2*zero", "blocks.1.attn.z"),
        ("blocks.0.ffn.hidden.4*scale*2", "blocks.0.ffn.hidden"),
        ("logits*scale*2", "logits"),
        ("embed*scale*1.5", "embed"),
    ],
)
def test_runs_part_where_the_change_is(edits, tap):
    lm, ids = models()["gpt"], tokenizer().encode(TEXTS[0])
    plain, changed = capture(lm, ids), capture(lm, ids, parse_edits(edits))
    found = first_difference(Comparison.of(changed, plain))
    assert (found.tap, found.position, found.partner) == (tap, 0, 0)
    apart = np.abs(changed[tap] - plain[tap])
    assert found.largest == pytest.approx(float(apart[:, 0].max() if apart.ndim == 3 else apart[0].max()))


def test_runs_of_two_prompts_part_at_the_first_other_token(comparison):
    mine, theirs = (run.token_ids for run in comparison.runs)
    first = next(i for i, p in enumerate(comparison.alignment.partners) if p is None or mine[i] != theirs[p] or i != p)
    found = first_difference(comparison)
    assert found.position >= first and found.partner == comparison.alignment.partners[found.position]


def test_rounding_is_no_difference():
    lm, ids = models()["rope"], tokenizer().encode(TEXTS[0])
    plain, shifted = capture(lm, ids), capture(lm, ids, parse_edits("blocks.0.attn.q*scale*1.00000012"))
    assert first_difference(Comparison.of(plain, plain)) is None
    assert first_difference(Comparison.of(shifted, plain)) is None


def test_runs_without_common_tokens_have_no_first_difference():
    lm = models()["rope"]
    none = Comparison.of(*(capture(lm, ids, tokenizer=tokenizer()) for ids in ((5, 6, 7), (8, 9))))
    assert none.alignment.kind == "none" and first_difference(none) is None
