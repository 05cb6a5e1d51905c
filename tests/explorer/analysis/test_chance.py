from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis import chance as module
from explorer.analysis.chance import Turns, chance
from explorer.analysis.heads import HEAD_SCORES, head_scores, targets_of, without_first
from explorer.architecture.attention import visible
from explorer.tracing.capture import capture

IDS = [5, 6, 5, 5, 7, 6, 5, 9, 6, 6]

every_score = pytest.mark.parametrize("name", HEAD_SCORES)
hiding = pytest.mark.parametrize("hide_first", [False, True], ids=["shown", "hidden"])


@pytest.fixture
def repeating(lms):
    """A run in which tokens come again and again."""
    return capture(lms["rope"], IDS)


def of_pattern(trace, pattern):
    """The run with every head attending by one pattern (T, T)."""
    heads = np.stack([pattern] * trace.config.num_heads).astype(np.float32)
    values = {f"blocks.{layer}.attn.pattern": heads for layer in range(trace.config.num_layers)}
    return replace(trace, values=trace.values | values)


@every_score
@hiding
def test_the_even_score_is_that_of_a_head_that_spreads_its_attention_evenly(repeating, name, hide_first):
    even = np.tri(len(IDS)) / np.arange(1, len(IDS) + 1)[:, None]
    found = chance(repeating, name, hide_first).even
    assert_allclose(head_scores(of_pattern(repeating, even), name, hide_first), np.stack([found] * 3, axis=-1))


@hiding
@pytest.mark.parametrize("name", ["previous_token", "spread"])
def test_of_a_window_it_is_that_of_what_is_in_it(lms, name, hide_first):
    trace = capture(lms["local"], IDS)
    even = np.stack([visible(trace.config, layer, len(IDS)) for layer in (0, 1)]).astype(float)
    even /= even.sum(-1, keepdims=True)
    heads = {f"blocks.{i}.attn.pattern": np.stack([even[i]] * 3) for i in (0, 1)}
    built, found = replace(trace, values={**trace.values, **heads}), chance(trace, name, hide_first).even
    assert_allclose(head_scores(built, name, hide_first), np.stack([found] * 3, axis=-1), rtol=1e-6)
    assert found[0] < found[1] or name == "spread"  # fewer to look at


@every_score
@hiding
def test_an_even_head_is_not_above_chance(repeating, name, hide_first):
    trace = of_pattern(repeating, np.tri(len(IDS)) / np.arange(1, len(IDS) + 1)[:, None])
    exceeds = chance(trace, name, hide_first).is_exceeded(head_scores(trace, name, hide_first))
    assert exceeds.all() if name == "spread" else not exceeds.any()


@pytest.mark.parametrize("style", ["rope", "local"])
def test_tries_are_made_once_for_layers_that_see_the_same_and_looked_at_in_parts(lms, monkeypatch, style):
    """Whatever the size of the parts."""
    trace = capture(lms[style], IDS)
    expected, made = chance(trace, "duplicate_token").within, []
    monkeypatch.setattr(module, "MOST_CELLS", 1)  # a query at a time
    monkeypatch.setattr(module, "Turns", lambda *asked: made.append(asked) or Turns(*asked))
    assert_allclose(chance(replace(trace), "duplicate_token").within, expected, rtol=1e-6)
    kinds = {tuple(visible(trace.config, layer, len(IDS)).sum(-1)) for layer in range(trace.config.num_layers)}
    assert len(made) == len(kinds) == (2 if style == "local" else 1)


@pytest.mark.parametrize("name", ["previous_token", "self", "duplicate_token", "induction"])
@hiding
def test_a_head_that_always_looks_there_is_above_chance(repeating, name, hide_first):
    targets = targets_of(repeating, name).astype(float)
    targets[:, 0] += 1e-3  # where there is nothing to look at
    trace = of_pattern(repeating, targets / targets.sum(-1, keepdims=True))
    assert chance(trace, name, hide_first).is_exceeded(head_scores(trace, name, hide_first)).all()


@pytest.mark.parametrize("name", ["duplicate_token", "induction", "previous_token"])
@hiding
def test_what_chance_gives_is_that_of_all_turns(lms, name, hide_first):
    """Held to every possible turn of every row that counts, of a run short enough to count them all."""
    trace = capture(lms["rope"], [5, 6, 5, 7, 5])
    patterns = trace.stack("blocks.*.attn.pattern").astype(float)
    patterns = without_first(patterns) if hide_first else patterns
    targets, first = targets_of(trace, name), int(hide_first)
    rows = [query for query in range(1, 5) if targets[query].any()]
    scores = []
    for turns in product(*(range(query + 1 - first) for query in rows)):
        each = [
            np.roll(patterns[..., query, first : query + 1], turn, -1) @ targets[query, first : query + 1]
            for query, turn in zip(rows, turns, strict=True)
        ]
        scores.append(np.mean(each, axis=0))
    found = chance(trace, name, hide_first)
    assert found.queries == len(rows)
    assert_allclose(np.mean(scores, axis=0), np.stack([found.even] * 3, axis=-1), atol=1e-6)
    low, high = (np.quantile(scores, share, axis=0, method="inverted_cdf") for share in (0.9, 0.98))
    assert (low - 1e-6 <= found.within).all() and (found.within <= high + 1e-6).all()


def test_of_one_query_that_counts_even_a_sharp_head_may_be_chance(lms):
    """A single repetition with six keys before it: one turn in six finds the right one."""
    trace = capture(lms["rope"], [1, 2, 3, 4, 5, 1])
    trace = of_pattern(trace, np.eye(6)[[0, 0, 0, 0, 0, 1]])
    assert_allclose(head_scores(trace, "induction"), 1)
    found = chance(trace, "induction")
    assert found.queries == 1 and found.even == pytest.approx([1 / 6] * 2)
    assert not found.is_exceeded(head_scores(trace, "induction")).any()


def test_there_is_none_where_no_query_counts(lms):
    trace = capture(lms["rope"], [1, 2, 3])
    assert chance(trace, "induction") is None
    assert chance(capture(lms["rope"], [1]), "spread") is None


def test_it_is_the_same_each_time(repeating):
    again = replace(repeating)
    assert chance(repeating, "induction") is chance(repeating, "induction")
    assert (chance(repeating, "induction").within == chance(again, "induction").within).all()
