"""Sentences about redundant components, and their links, for the example prompt that shows them."""

import re

import numpy as np
import pytest

from explorer.analysis.next_token import next_token_distribution
from explorer.analysis.prediction_reasons import RedundantComponents, find_redundancy
from explorer.explain.notation import format_percent
from explorer.interventions import parse_interventions
from explorer.lessons.example_prompts import EXAMPLES
from explorer.lessons.prediction_explanation import explain_redundancy
from explorer.tracing.capture import capture
from model.checkpoint import load_checkpoint


@pytest.fixture(scope="module")
def model():
    return load_checkpoint("llama-fables")


@pytest.mark.exhaustive
def test_three_redundant_heads_copy_name(model):
    lm, tokenizer = model
    trace = capture(lm, tokenizer.encode(EXAMPLES["copy a name"]), tokenizer=tokenizer)
    last = len(trace) - 1
    clauses = list(explain_redundancy(trace, last, find_redundancy(trace, last), next_token_distribution(trace, last)))
    first, *of_sets = re.split(r"(?<=[.:]) ", clauses[0].text)
    assert max(len(sentence.split()) for sentence in (first, *of_sets[-2:])) <= 20 and of_sets[-1].endswith("size:")
    (clause_of_three,) = [clause for clause in clauses if clause.text.count(" head ") == 3]
    assert clause_of_three.text == (
        "Layer 5 head 1, layer 4 head 3 and layer 5 head 5: one by one they cost 0.00741, 0.00997, 0.00715 bits, "
        "in sum 0.0245. Together they cost 1.77. This leaves that probability at 29%."
    )
    edits = clause_of_three.selection_change["edits"]
    assert edits == "blocks.5.attn.z.1*zero~blocks.4.attn.z.3*zero~blocks.5.attn.z.5*zero"
    for ablations, probability in ((edits, 0.293), (edits.split("~")[1], 0.992)):
        logits = capture(lm, trace.token_ids, parse_interventions(ablations))["logits"][last].astype(np.float64)
        shares = np.exp(logits - logits.max())
        assert shares[trace["logits"][last].argmax()] / shares.sum() == pytest.approx(probability, abs=1e-3)


@pytest.mark.exhaustive
def test_existing_interventions_are_kept_in_links(model):
    lm, tokenizer = model
    trace = capture(lm, tokenizer.encode("The fox"), parse_interventions("blocks.0.attn.z.1*zero"), tokenizer=tokenizer)
    clauses = list(explain_redundancy(trace, 1, find_redundancy(trace, 1), next_token_distribution(trace, 1)))
    assert len(clauses) > 1
    assert all(clause.selection_change["edits"].startswith("blocks.0.attn.z.1*zero~") for clause in clauses[1:])


def test_no_component_raises_token(capture_trace):
    trace, redundancy = capture_trace("rope"), RedundantComponents(5, 6, -3.0, (), ())
    prediction = next_token_distribution(trace, 3, temperature=0)
    (clause,) = explain_redundancy(trace, 3, redundancy, prediction)
    probability = format_percent(float(prediction.plain[5]))
    assert (
        f"probability {probability} before temperature: fewer than two parts raise" in clause.text
        and "edits" not in clause.selection_change
    )
