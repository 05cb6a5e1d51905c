import math
from functools import cache

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from explorer.analysis.next_token import jensen_shannon_distance
from explorer.analysis.residual import residual_stages
from explorer.analysis.run_difference import (
    first_difference,
    head_distances,
    next_token_probabilities,
    pattern_distances,
    relative_stream_distance,
    surprisal_difference,
)
from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from explorer.tracing.comparison import Comparison
from tests.sample_models import models, tokenizer
from tests.subtest_loops import each_style

TEXTS = "the fox asked the owl", "the fox and then the owl asked the owl"


@cache
def make_comparison(style: str) -> Comparison:
    lm = models()[style]
    return Comparison.from_traces(*(capture(lm, tokenizer().encode(text), tokenizer=tokenizer()) for text in TEXTS))


@each_style
def test_stream_distance_is_relative_to_other_norm(style):
    comparison = make_comparison(style)
    distances, partners = relative_stream_distance(comparison), comparison.alignment.partners
    for row, stage in enumerate(residual_stages(comparison.trace)):
        for position, partner in enumerate(partners):
            if partner is None:
                assert np.isnan(distances[row, position])
                continue
            a, b = comparison.trace[stage.tap][position], comparison.other[stage.tap][partner]
            expected = math.dist(a.tolist(), b.tolist()) / math.hypot(*b.tolist())
            assert distances[row, position] == pytest.approx(expected, rel=1e-4, abs=1e-6)


@each_style
def test_head_distances_cover_keys_of_both_runs(style):
    """Recompute head distances: aligned keys count as one key, and an unaligned key has weight 0 in the other run."""
    comparison = make_comparison(style)
    partners, inverse = comparison.alignment.partners, comparison.alignment.inverse
    for layer in range(2):
        first, second = (run[f"blocks.{layer}.attn.pattern"].astype(float) for run in comparison.runs)
        for head in range(len(first)):
            distances = []
            for query, partner in enumerate(partners):
                if partner is None:
                    continue
                keys = [("a", key) for key in range(len(partners))]
                keys += [("b", key) for key, partner_query in enumerate(inverse) if partner_query is None]
                p = [first[head, query, key] if run == "a" else 0.0 for run, key in keys]
                q = [
                    second[head, partner, key]
                    if run == "b"
                    else 0.0
                    if partners[key] is None
                    else second[head, partner, partners[key]]
                    for run, key in keys
                ]
                assert sum(p) == pytest.approx(1, abs=1e-5) and sum(q) == pytest.approx(1, abs=1e-5)
                distances.append(float(jensen_shannon_distance(np.array(p), np.array(q))))
                assert pattern_distances(comparison, layer)[head, query] == pytest.approx(distances[-1], abs=1e-6)
            assert head_distances(comparison)[layer, head] == pytest.approx(np.mean(distances), abs=1e-6)


@each_style
def test_next_token_and_surprisal_use_aligned_positions(style):
    comparison = make_comparison(style)
    partners = comparison.alignment.partners
    first, second = next_token_probabilities(comparison, 3)
    nearest_partner = comparison.alignment.nearest_aligned(3)
    for probabilities, run, position in ((first, comparison.trace, 3), (second, comparison.other, nearest_partner)):
        assert_allclose(probabilities, torch.tensor(run["logits"][position]).softmax(-1), rtol=1e-4)
    bits = surprisal_difference(comparison)
    for position, partner in enumerate(partners):
        if not position or not partner:
            assert np.isnan(bits[position])
            continue
        surprisals = [
            -torch.tensor(run["logits"][index - 1]).double().log_softmax(-1)[run.token_ids[index]] / math.log(2)
            for run, index in ((comparison.trace, position), (comparison.other, partner))
        ]
        assert bits[position] == pytest.approx(float(surprisals[0] - surprisals[1]), abs=1e-4)


@pytest.mark.parametrize(
    ("edits", "tap"),
    [
        ("blocks.1.attn.z.2*zero", "blocks.1.attn.z"),
        ("blocks.0.ffn.hidden.4*scale*2", "blocks.0.ffn.hidden"),
        ("logits*scale*2", "logits"),
        ("embed*scale*1.5", "embed"),
    ],
)
def test_first_difference_is_where_intervention_acts(edits, tap):
    lm, ids = models()["gpt"], tokenizer().encode(TEXTS[0])
    plain, changed = capture(lm, ids), capture(lm, ids, parse_interventions(edits))
    difference = first_difference(Comparison.from_traces(changed, plain))
    assert (difference.tap, difference.position, difference.partner) == (tap, 0, 0)
    differences = np.abs(changed[tap] - plain[tap])
    assert difference.largest == pytest.approx(
        float(differences[:, 0].max() if differences.ndim == 3 else differences[0].max())
    )


@each_style
def test_first_difference_is_at_first_differing_token(style):
    comparison = make_comparison(style)
    first_ids, second_ids = (run.token_ids for run in comparison.runs)
    first = next(
        i for i, p in enumerate(comparison.alignment.partners) if p is None or first_ids[i] != second_ids[p] or i != p
    )
    difference = first_difference(comparison)
    assert difference.position >= first and difference.partner == comparison.alignment.partners[difference.position]


def test_rounding_error_is_not_a_difference():
    lm, ids = models()["rope"], tokenizer().encode(TEXTS[0])
    plain, shifted = capture(lm, ids), capture(lm, ids, parse_interventions("blocks.0.attn.q*scale*1.00000012"))
    assert first_difference(Comparison.from_traces(plain, plain)) is None
    assert first_difference(Comparison.from_traces(shifted, plain)) is None


def test_runs_without_common_tokens_have_no_first_difference():
    lm = models()["rope"]
    none = Comparison.from_traces(*(capture(lm, ids, tokenizer=tokenizer()) for ids in ((5, 6, 7), (8, 9))))
    assert none.alignment.kind == "none" and first_difference(none) is None
