"""Interventions of the table in `docs/experiments.md` apply and change the run."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from explorer.interventions import KINDS, CrossRunIntervention, parse_interventions
from explorer.tracing.capture import capture
from model.checkpoint import load_checkpoint
from tests.subtest_loops import subtest_each

GUIDE = (Path(__file__).parents[3] / "docs" / "experiments.md").read_text(encoding="utf-8")
TEXTS = re.findall(r"^\| `(\S+\*\S+)` \|", GUIDE, re.MULTILINE)


@pytest.fixture(scope="module")
def lm():
    return load_checkpoint("llama-fables")[0]


def test_every_operation_has_an_example():
    assert {edit.operation for text in TEXTS for edit in parse_interventions(text)} == set(KINDS)


@pytest.fixture(scope="module")
def baseline_trace(lm):
    return capture(lm, list(range(300, 312)))


@pytest.fixture(scope="module")
def other(lm):
    return capture(lm, list(range(312, 300, -1)))


@subtest_each("text", TEXTS)
def test_example_changes_run(lm, baseline_trace, other, text):
    edits = parse_interventions(text)
    edits = [replace(edit, source=other) if isinstance(edit, CrossRunIntervention) else edit for edit in edits]
    assert "~".join(map(str, edits)) == text
    difference = capture(lm, baseline_trace.token_ids, edits)["logits"] - baseline_trace["logits"]
    assert np.abs(difference).max() > 1e-4 or "shift" in text  # RoPE scores do not change if all positions shift
