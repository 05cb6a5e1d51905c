"""The changes in the README's table can be made, and change the run."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from explorer.state.interventions import KINDS, FromOther, parse_edits
from explorer.tracing.capture import capture
from model.checkpoint import load_checkpoint

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
TEXTS = re.findall(r"^\| `(\S+\*\S+)` \|", README, re.MULTILINE)


@pytest.fixture(scope="module")
def lm():
    return load_checkpoint("llama-fables")[0]


def test_every_kind_has_an_example():
    assert {edit.operation for text in TEXTS for edit in parse_edits(text)} == set(KINDS)


@pytest.mark.parametrize("text", TEXTS)
def test_an_example_changes_the_run(lm, text):
    ids, edits = list(range(300, 312)), parse_edits(text)
    other = capture(lm, list(range(312, 300, -1)))
    edits = [replace(edit, source=other) if isinstance(edit, FromOther) else edit for edit in edits]
    assert "~".join(map(str, edits)) == text
    difference = capture(lm, ids, edits)["logits"] - capture(lm, ids)["logits"]
    assert np.abs(difference).max() > 1e-4 or "shift" in text  # which rotary positions do not mind
