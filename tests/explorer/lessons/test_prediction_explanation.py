"""Clauses of "why this token", compared with separate runs: each ablation is a run of its own."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.analysis.next_token import next_token_distribution, next_token_ranking
from explorer.analysis.prediction_reasons import (
    DECISIVE_BITS,
    MAX_COMPONENTS,
    MIN_SHARE,
    ModelComponent,
    prediction_reasons,
)
from explorer.explain.notation import format_percent, quote_token, quote_word
from explorer.lessons.prediction_explanation import (
    explain_prediction,
    explain_prediction_in_story,
    explain_written_token,
)
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.forward_hooks import apply_interventions
from explorer.tracing.model_library import ModelLibrary
from explorer.views.overview.whole_model import whole_model_sentence
from model.generation.sampling import draw_token
from tests.subtest_loops import subtest_each

MODELS = ("llama-fables", "llama-fables-gpt", "llama-fables-snapshots/step-001024")
TEXTS = (
    "Once upon a time there was a fox who wanted the moon.",
    "Zorblat met Mimi. Zorblat said hello to Mimi. Then Zorb",
    "The wugly bird sat in a tree. A cat looked at the wugly",
    "Lily gave Tom an apple because she was kind. Tom thanked",
    "Sara put the key in the box. Tom took the box home and opened it with the",
    "The owl was wise and old. Every night the owl",
    "A bear and a bee were friends, but the bear ate all the honey and",
    "“Why are you sad?” asked the frog. “Because",
    "12 + 34 is not a story, Xqzt",
    "The sun went down. It was dark, so the children were",
)
SHARES = (0.3, 0.7, 1.0)  # fractions of a text
QUOTED, INDEX, NUMBER = "“(.*)”", r"(\d+)", r"([−\d.e]+)"
PERCENT, DIFFERENCE = r"(over 99%|less than 0\.01%|[\d.]+%)", "the logit difference “(.*)” − “(.*)”"
COMPONENT = rf"(?:layer {INDEX} head {INDEX}|the feed-forward of layer {INDEX})"
LOOK_BACK = rf"The look back that adds most to {QUOTED}: (.*) \(([+−][\d.]+) of its logit\)\."
WHOLE_HEAD = r" The whole head adds (.+); without it the logit changes by (.+), as later parts change, too\."
CLAUSES = {
    "ahead": f"Why {QUOTED}, with probability {PERCENT} before temperature\\? "
    f"Its logit is {NUMBER} above that of {QUOTED}\\.",
    "behind": f"{QUOTED} has probability {PERCENT} before temperature: its logit is {NUMBER} below that of {QUOTED}\\.",
    "head": f"Layer {INDEX} head {INDEX} adds {NUMBER} to {DIFFERENCE}; it looks most at {QUOTED} "
    f"\\({INDEX}\\), with weight {NUMBER}\\.",
    "feed_forward": f"The feed-forward of layer {INDEX} adds {NUMBER} to {DIFFERENCE}\\.",
    "falls": f"Switched off alone, it takes that probability down to {PERCENT}\\.",
    "rises": f"Switched off alone, it lets that probability rise to {PERCENT}\\.",
    "stays": f"Switched off alone, it leaves that probability at {PERCENT}\\.",
    "partner": f"Two parts replace one another, {COMPONENT} and {COMPONENT}: "
    f"switched off alone they cost {NUMBER} and {NUMBER} "
    f"bits, together {NUMBER}\\.",
    "together": f"Switched off together, (.*) take that probability down to {PERCENT}: that costs {NUMBER} bits, where "
    f"one by one they cost {NUMBER} in sum\\.",
    "alone": f"No part decides it alone: switched off one by one, none costs more than {NUMBER} bits\\.",
    "dearest": f"What is missed most is {COMPONENT}: without it {NUMBER} bits are lost\\.",
}


class ExpectedPrediction:
    """Expected values for the clauses about one prediction."""

    def __init__(self, lm, trace, target: int):
        self.lm, self.trace, self.last, self.target = lm, trace, len(trace) - 1, target
        logits = trace["logits"][-1].astype(np.float64)
        order = np.argsort(-logits, kind="stable")
        self.token, self.contrast = order[target - 1], order[0 if target > 1 else 1]
        self.lead = logits[self.token] - logits[self.contrast]
        self.log2_p = self.log2_probability_without()

    def logits_without(self, *components: ModelComponent) -> np.ndarray:
        with apply_interventions(self.lm, [part.ablation for part in components]), torch.inference_mode():
            return self.lm(torch.tensor([self.trace.token_ids]))[0, -1].double().numpy()

    def log2_probability_without(self, *components: ModelComponent) -> float:
        """Return log₂ of the token's probability in a run with these components ablated."""
        logits = self.logits_without(*components)
        return (logits[self.token] - np.logaddexp.reduce(logits)) / np.log(2)

    def ablation_cost(self, *components: ModelComponent) -> float:
        return self.log2_p - self.log2_probability_without(*components)

    def direct_effect(self, component: ModelComponent, is_contrasted: bool = True) -> float:
        """Return the contribution to the logit difference, or the logit, with the final norm's scale held fixed."""
        config, weights = self.trace.config, self.trace.weights
        x, block = self.trace[f"blocks.{config.num_layers - 1}.resid_post"][-1].astype(np.float64), component.layer
        if component.head is None:
            vector = self.trace[f"blocks.{block}.ffn.out"][-1].astype(np.float64)
        else:
            d = slice(component.head * config.d_head, (component.head + 1) * config.d_head)
            vector = weights[f"blocks.{block}.attn.o_proj.weight"][:, d] @ self.trace[f"blocks.{block}.attn.z"][
                component.head, -1
            ].astype(np.float64)
        if config.norm == "layernorm":
            x, vector = x - x.mean(), vector - vector.mean()
        direction = weights["lm_head.weight"][self.token]
        if is_contrasted:
            direction = direction - weights["lm_head.weight"][self.contrast]
        return vector * weights["final_norm.weight"] / np.sqrt((x**2).mean() + config.norm_eps) @ direction


def parse_float(text: str) -> float:
    return float(text.replace("−", "-"))


def make_component(layer: str | None, head: str | None, feed_forward: str | None) -> ModelComponent:
    return ModelComponent(int(feed_forward)) if layer is None else ModelComponent(int(layer), int(head))


def all_components(config) -> list[ModelComponent]:
    return [
        ModelComponent(layer, head) for layer in range(config.num_layers) for head in (None, *range(config.num_heads))
    ]


def assert_near(text: str, truth: float):
    """Assert that a number shown with three digits is the true value."""
    assert parse_float(text) == pytest.approx(truth, rel=6e-3, abs=2e-5), (text, truth)


def check_clauses(truth: ExpectedPrediction, clauses):
    trace, reason, named_components = truth.trace, None, []
    if match := re.fullmatch(f"{LOOK_BACK}(?:{WHOLE_HEAD})?", clauses[0].text, re.S):
        token, source, effect, total, change = match.groups()  # the whole-model sentence quotes the first part
        assert f"“{token}”" == quote_token(trace.vocabulary[truth.token])
        headline = whole_model_sentence(trace, Selection(query=truth.last, target=truth.target))
        assert f"The look back that adds most: {source} ({effect} of logit " in headline
        layer, head = map(int, re.findall(r"\d+", source)[:2])
        component = ModelComponent(layer, head)
        assert clauses[0].ablation == str(component.ablation)
        true_change = truth.logits_without(component)[truth.token] - truth.logits_without()[truth.token]
        if total is not None:
            assert parse_float(total) == pytest.approx(truth.direct_effect(component, is_contrasted=False), abs=0.006)
            assert parse_float(change) == pytest.approx(true_change, abs=0.006)
        margin = true_change + parse_float(effect) / 2  # of a fall by half of what the look back adds
        assert abs(margin) < 0.006 or (total is not None) == (margin > 0)
        clauses = clauses[1:]
    kinds = []
    for clause in clauses:
        matches = {kind: re.fullmatch(text, clause.text, re.S) for kind, text in CLAUSES.items()}
        ((kind, clause_match),) = ((kind, match) for kind, match in matches.items() if match)
        kinds.append(kind)
        groups = clause_match.groups()
        if kind in ("ahead", "behind"):
            assert [f"“{groups[i]}”" for i in (0, 3)] == [
                quote_token(trace.vocabulary[i]) for i in (truth.token, truth.contrast)
            ]
            assert groups[1] == format_percent(2**truth.log2_p)
            assert_near(groups[2], abs(truth.lead))
            assert (kind == "ahead") == (truth.lead >= 0)
        if kind in ("head", "feed_forward"):
            reason = ModelComponent(int(groups[0]), int(groups[1]) if kind == "head" else None)
            named_components.append(reason)
            adds, *tokens = groups[2:5] if kind == "head" else groups[1:]
            assert_near(adds, truth.direct_effect(reason))
            assert [f"“{token}”" for token in tokens] == [
                quote_token(trace.vocabulary[i]) for i in (truth.token, truth.contrast)
            ]
        if kind == "head":
            weights = trace[f"blocks.{reason.layer}.attn.pattern"][reason.head, -1]
            assert int(groups[6]) == weights.argmax() == clause.selection_change["key"]
            assert_near(groups[7], weights.max())
        if kind in ("falls", "rises", "stays"):
            cost = truth.ablation_cost(reason)
            assert groups[0] == format_percent(2 ** (truth.log2_p - cost))
            assert kind == ("falls" if cost >= DECISIVE_BITS else "rises" if cost <= -DECISIVE_BITS else "stays")
        if kind == "partner":
            first, second = make_component(*groups[:3]), make_component(*groups[3:6])
            assert first == named_components[0]
            alone, both = (truth.ablation_cost(first), truth.ablation_cost(second)), truth.ablation_cost(first, second)
            for shown, cost in zip(groups[6:], (*alone, both), strict=True):
                assert_near(shown, cost)
            assert both - sum(alone) > DECISIVE_BITS - 1e-3
        if kind == "together":
            parts = [make_component(*clause_match.groups()) for clause_match in re.finditer(COMPONENT, groups[0])]
            assert parts == named_components and clause.selection_change["edits"] == "~".join(
                str(part.ablation) for part in parts
            )
            together, alone = truth.ablation_cost(*parts), sum(map(truth.ablation_cost, parts))
            assert groups[1] == format_percent(2 ** (truth.log2_p - together))
            for shown, number in zip(groups[2:], (together, alone), strict=True):
                assert_near(shown, number)
            assert together - alone > DECISIVE_BITS - 1e-3
        if kind == "dearest":
            part = make_component(*groups[:3])
            assert_near(groups[3], truth.ablation_cost(part))
            assert part not in named_components
        if kind in ("alone", "dearest"):
            largest = max(map(truth.ablation_cost, all_components(trace.config)))
            assert_near(groups[-1], largest)
            assert (kind == "alone") == (largest < DECISIVE_BITS)
        if kind not in ("ahead", "behind"):
            shown = (
                make_component(*groups[3:6])
                if kind == "partner"
                else make_component(*groups[:3])
                if kind == "dearest"
                else reason
            )
            if kind not in ("alone", "together"):
                assert (
                    clause.selection_change["layer"] == shown.layer
                    and clause.selection_change.get("head") == shown.head
                )
        assert clause.selection_change["query"] == truth.last and clause.figure_id.startswith(
            f"{clause.selection_change['view']}-"
        )
    assert kinds[0] in ("ahead", "behind") and len(named_components) <= MAX_COMPONENTS
    return named_components


def explain_case(library, checkpoint: str, text: str, share: float, target: int = 1):
    lm, tokenizer = library.model(checkpoint)
    ids = tokenizer.encode(text)
    trace = capture(lm, ids[: max(1, round(len(ids) * share))], tokenizer=tokenizer)
    truth = ExpectedPrediction(lm, trace, target)
    return truth, prediction_reasons(trace, truth.last, target)


def explain(truth: ExpectedPrediction, reasons) -> list:
    """Return the clauses at a temperature that changes the probability, so that each says which one it means."""
    prediction = next_token_distribution(truth.trace, truth.last, temperature=0)
    return list(explain_prediction(truth.trace, truth.last, reasons, prediction))


@pytest.fixture(scope="module")
def library() -> ModelLibrary:
    return ModelLibrary("cpu")


CASES = [  # each text in each model, with varying shares
    (model, text, SHARES[(i + j) % len(SHARES)]) for i, model in enumerate(MODELS) for j, text in enumerate(TEXTS)
]
CORE_CASE = CASES[5]  # a whole text


@subtest_each(
    ("model", "text", "share"),
    [pytest.param(*case, marks=() if case == CORE_CASE else pytest.mark.exhaustive) for case in CASES],
    per_case=10,
)
def test_every_clause_is_true(library, model, text, share):
    truth, reasons = explain_case(library, model, text, share)
    named_components = check_clauses(truth, explain(truth, reasons))
    parts = [
        ModelComponent(i, j)
        for i in range(truth.trace.config.num_layers)
        for j in (None, *range(truth.trace.config.num_heads))
    ]
    effects = {part: truth.direct_effect(part) for part in parts}
    total_positive = sum(add for add in effects.values() if add > 0)
    best = sorted(effects, key=effects.get, reverse=True)[:MAX_COMPONENTS]
    assert named_components == [part for part in best if effects[part] >= max(MIN_SHARE * total_positive, 1e-12)]


def test_less_likely_token_is_compared_with_likeliest(library):
    truth, reasons = explain_case(library, MODELS[0], TEXTS[4], 1.0, target=3)
    clauses = explain(truth, reasons)
    assert any(" below that of “·key”" in clause.text for clause in clauses[:2])
    check_clauses(truth, clauses)


def test_story_explanation_has_three_sentences_in_percent_that_ablation_confirms(library):
    """The chance without the head is that which the page shows once it is off, and lower only if it says so."""
    for text, share, wording in (
        (TEXTS[0], 1.0, "Without this head: {after}% instead of {before}%."),
        (TEXTS[0], 0.7, "What else the head does costs more: without the head {after}% instead of {before}%."),
        (TEXTS[1], 1.0, "Without this head the chance stays at over {after}%."),
    ):
        truth, reasons = explain_case(library, MODELS[0], text, share)

        def predict(*ablations, truth=truth):
            trace = capture(truth.lm, truth.trace.token_ids, ablations, tokenizer=library.model(MODELS[0])[1])
            return next_token_distribution(trace, truth.last, temperature=0.8, top_k=40)

        chances, helper, without = explain_prediction_in_story(truth.trace, predict(), reasons, predict)
        layer, head, key = re.search(r"layer (\d+) head (\d+) at (.*)\.$", helper.text).groups()
        component = ModelComponent(int(layer), int(head))
        before, after = (predict(*ablation).sampled[truth.token] for ablation in ((), (component.ablation,)))
        before, own, after = (f"{min(99, 100 * share):.0f}" for share in (before, 2**truth.log2_p, after))
        assert re.findall(r"(\d+)%", chances.text) == ([before] if before == own else [before, own])
        assert without.text.startswith(wording.format(before=before, after=after))
        assert without.ablation == str(component.ablation)
        headline = whole_model_sentence(truth.trace, Selection(query=truth.last, depth="story"))
        assert f"The look back that adds most to its score is at {key}." in headline
    check_written_tokens(truth.trace)


def check_written_tokens(trace):
    """Compare the sentences on a written token: the likeliest, one that the random number draws, and another."""
    prediction = next_token_distribution(trace, 2, temperature=1.9, seed=0)
    ranking = next_token_ranking(trace, 2)
    likeliest, unlikely = ranking[0], ranking[200]
    assert not list(explain_written_token(trace, replace(prediction, actual=int(likeliest)), 1.9))
    sampled_written = replace(prediction, actual=int(unlikely), u=find_random_number(prediction.sampled, unlikely))
    first, expected = explain_written_token(trace, sampled_written, 1.9)
    token, chance = quote_word(trace.vocabulary[unlikely]), format_percent(float(prediction.sampled[unlikely]))
    assert first.text == (
        f"{token} was a random draw: its chance was {chance} at temperature 1.9, number 201 on the list."
    )
    own = f"{format_percent(float(prediction.plain[likeliest]))} before temperature"
    assert expected.text == f"The model itself expected {quote_word(trace.vocabulary[likeliest])}: {own}."
    untouched = replace(sampled_written, sampled=prediction.plain)
    _first, plain = explain_written_token(trace, untouched, 1.0)
    assert plain.text == expected.text.replace(" before temperature", "")
    other_draw = replace(sampled_written, u=find_random_number(prediction.sampled, likeliest))
    other, _expected = explain_written_token(trace, other_draw, 1.9)
    assert other.text.startswith(f"{token} was not the likeliest: its chance was ")


def find_random_number(sampled, token_id):
    """Return a random number that draws a token."""
    return next(u for u in np.linspace(0, 1, 100_001)[:-1] if draw_token(sampled, u) == token_id)
