"""Every clause of "why this token" is true of the run, worked out another way: each silence as a run of its own."""

import re

import numpy as np
import pytest
import torch

from explorer.analysis.why import DECISIVE, LEAST_SHARE, MOST_PARTS, Part, why
from explorer.explain.notation import quoted
from explorer.lessons.why import told
from explorer.tracing.capture import capture
from explorer.tracing.intervening import edited
from explorer.tracing.library import Library

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
SHARES = (0.3, 0.7, 1.0)  # of a text
QUOTED, PLACED, NUMBER = "“(.*)”", r"(\d+)", r"([−\d.e]+)"
PART = rf"(?:layer {PLACED} head {PLACED}|the feed-forward of layer {PLACED})"
CLAUSES = {
    "ahead": f"Why {QUOTED}, with probability {NUMBER}\\? Its logit is {NUMBER} above that of {QUOTED}\\.",
    "behind": f"{QUOTED} has probability {NUMBER}: its logit is {NUMBER} below that of {QUOTED}\\.",
    "head": f"Layer {PLACED} head {PLACED} adds {NUMBER} to that difference; it looks most at {QUOTED} "
    f"\\({PLACED}\\), with weight {NUMBER}\\.",
    "feed_forward": f"The feed-forward of layer {PLACED} adds {NUMBER} to that difference\\.",
    "falls": f"Silenced alone, it takes the probability down to {NUMBER}\\.",
    "rises": f"Silenced alone, it lets the probability rise to {NUMBER}\\.",
    "stays": f"Silenced alone, it leaves the probability at {NUMBER}\\.",
    "partner": f"Two stand in for one another, {PART} and {PART}: silenced alone they cost {NUMBER} and {NUMBER} "
    f"bits, together {NUMBER}\\.",
    "together": f"Silenced together, (.*) take the probability down to {NUMBER}: that costs {NUMBER} bits, where one "
    f"by one they cost {NUMBER} in sum\\.",
    "alone": f"No part decides it alone: silenced one by one, none costs more than {NUMBER} bits\\.",
    "dearest": f"What is missed most is {PART}: without it {NUMBER} bits are lost\\.",
}


class Truth:
    """What the clauses of one prediction must say."""

    def __init__(self, lm, trace, target: int):
        self.lm, self.trace, self.last = lm, trace, len(trace) - 1
        logits = trace["logits"][-1].astype(np.float64)
        order = np.argsort(-logits, kind="stable")
        self.token, self.rival = order[target - 1], order[0 if target > 1 else 1]
        self.lead = logits[self.token] - logits[self.rival]
        self.log2_p = self.without()

    def without(self, *parts: Part) -> float:
        """log₂ of the token's probability in a run in which these are silent."""
        with edited(self.lm, [part.silenced for part in parts]), torch.inference_mode():
            logits = self.lm(torch.tensor([self.trace.token_ids]))[0, -1].double().numpy()
        return (logits[self.token] - np.logaddexp.reduce(logits)) / np.log(2)

    def costs(self, *parts: Part) -> float:
        return self.log2_p - self.without(*parts)

    def adds(self, part: Part) -> float:
        """What the part's vector adds where the last norm divides by what it does."""
        config, weights = self.trace.config, self.trace.weights
        x, block = self.trace[f"blocks.{config.num_layers - 1}.resid_post"][-1].astype(np.float64), part.layer
        if part.head is None:
            vector = self.trace[f"blocks.{block}.ffn.out"][-1].astype(np.float64)
        else:
            d = slice(part.head * config.d_head, (part.head + 1) * config.d_head)
            vector = weights[f"blocks.{block}.attn.o_proj.weight"][:, d] @ self.trace[f"blocks.{block}.attn.z"][
                part.head, -1
            ].astype(np.float64)
        if config.norm == "layernorm":
            x, vector = x - x.mean(), vector - vector.mean()
        direction = weights["lm_head.weight"][self.token] - weights["lm_head.weight"][self.rival]
        return vector * weights["final_norm.weight"] / np.sqrt((x**2).mean() + config.norm_eps) @ direction


def value(text: str) -> float:
    return float(text.replace("−", "-"))


def part_of(layer: str | None, head: str | None, feed_forward: str | None) -> Part:
    return Part(int(feed_forward)) if layer is None else Part(int(layer), int(head))


def parts_of(config) -> list[Part]:
    return [Part(layer, head) for layer in range(config.num_layers) for head in (None, *range(config.num_heads))]


def near(shown: str, truth: float):
    """It is shown with three digits."""
    assert value(shown) == pytest.approx(truth, rel=6e-3, abs=2e-5), (shown, truth)


def verify(truth: Truth, clauses):
    trace, reason, named = truth.trace, None, []
    kinds = []
    for clause in clauses:
        matches = {kind: re.fullmatch(text, clause.words, re.S) for kind, text in CLAUSES.items()}
        ((kind, found),) = ((kind, match) for kind, match in matches.items() if match)
        kinds.append(kind)
        said = found.groups()
        if kind in ("ahead", "behind"):
            assert [f"“{said[i]}”" for i in (0, 3)] == [quoted(trace.vocabulary[i]) for i in (truth.token, truth.rival)]
            near(said[1], 2**truth.log2_p)
            near(said[2], abs(truth.lead))
            assert (kind == "ahead") == (truth.lead >= 0)
        if kind in ("head", "feed_forward"):
            reason = Part(int(said[0]), int(said[1]) if kind == "head" else None)
            named.append(reason)
            near(said[2 if kind == "head" else 1], truth.adds(reason))
        if kind == "head":
            weights = trace[f"blocks.{reason.layer}.attn.pattern"][reason.head, -1]
            assert int(said[4]) == weights.argmax() == clause.look["key"]
            near(said[5], weights.max())
        if kind in ("falls", "rises", "stays"):
            cost = truth.costs(reason)
            near(said[0], 2 ** (truth.log2_p - cost))
            assert kind == ("falls" if cost >= DECISIVE else "rises" if cost <= -DECISIVE else "stays")
        if kind == "partner":
            first, second = part_of(*said[:3]), part_of(*said[3:6])
            assert first == named[0]
            alone, both = (truth.costs(first), truth.costs(second)), truth.costs(first, second)
            for shown, cost in zip(said[6:], (*alone, both), strict=True):
                near(shown, cost)
            assert both - sum(alone) > DECISIVE - 1e-3
        if kind == "together":
            parts = [part_of(*found.groups()) for found in re.finditer(PART, said[0])]
            assert parts == named and clause.look["edits"] == "~".join(str(part.silenced) for part in parts)
            together, alone = truth.costs(*parts), sum(map(truth.costs, parts))
            for shown, number in zip(said[1:], (2 ** (truth.log2_p - together), together, alone), strict=True):
                near(shown, number)
            assert together - alone > DECISIVE - 1e-3
        if kind == "dearest":
            part = part_of(*said[:3])
            near(said[3], truth.costs(part))
            assert part not in named
        if kind in ("alone", "dearest"):
            largest = max(map(truth.costs, parts_of(trace.config)))
            near(said[-1], largest)
            assert (kind == "alone") == (largest < DECISIVE)
        if kind not in ("ahead", "behind"):
            shown = part_of(*said[3:6]) if kind == "partner" else part_of(*said[:3]) if kind == "dearest" else reason
            if kind not in ("alone", "together"):
                assert clause.look["layer"] == shown.layer and clause.look.get("head") == shown.head
        assert clause.look["query"] == truth.last and clause.picture.startswith(f"{clause.look['view']}-")
    assert kinds[0] in ("ahead", "behind") and len(named) <= MOST_PARTS
    return named


def explained(library, checkpoint: str, text: str, share: float, target: int = 1):
    lm, tokenizer = library.model(checkpoint)
    ids = tokenizer.encode(text)
    trace = capture(lm, ids[: max(1, round(len(ids) * share))], tokenizer=tokenizer)
    truth = Truth(lm, trace, target)
    return truth, why(trace, truth.last, target)


@pytest.fixture(scope="module")
def library() -> Library:
    return Library("cpu")


EVERY = [  # each text in each model, and in each another share of it
    (model, text, SHARES[(i + j) % len(SHARES)]) for i, model in enumerate(MODELS) for j, text in enumerate(TEXTS)
]
FIRST = EVERY[5]  # a whole text


@pytest.mark.parametrize(
    ("model", "text", "share"),
    [pytest.param(*case, marks=() if case == FIRST else pytest.mark.exhaustive) for case in EVERY],
)
def test_every_clause_is_true(library, model, text, share):
    truth, found = explained(library, model, text, share)
    named = verify(truth, list(told(truth.trace, truth.last, found)))
    parts = [
        Part(i, j) for i in range(truth.trace.config.num_layers) for j in (None, *range(truth.trace.config.num_heads))
    ]
    adds = {part: truth.adds(part) for part in parts}
    raising = sum(add for add in adds.values() if add > 0)
    best = sorted(adds, key=adds.get, reverse=True)[:MOST_PARTS]
    assert named == [part for part in best if adds[part] >= max(LEAST_SHARE * raising, 1e-12)]


def test_another_token_than_the_likeliest_is_explained_against_that(library):
    truth, found = explained(library, MODELS[0], TEXTS[4], 1.0, target=3)
    clauses = list(told(truth.trace, truth.last, found))
    assert " below that of “·key”" in clauses[0].words
    verify(truth, clauses)
