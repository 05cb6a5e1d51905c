"""What is found by running a model again with a part of it changed is found on other devices, too."""

from collections.abc import Generator
from copy import deepcopy

import pytest
from numpy.testing import assert_allclose

from explorer import activation_patching, attribution_patching, path_patching
from explorer.tracing.jobs import finished
from explorer.tracing.patching.asked import ASKED
from explorer.tracing.patching.parts import PARTS
from explorer.tracing.patching_question import PatchingQuestion
from tests.devices import on_each_device
from tests.exhaustive import in_turn
from tests.specimens import CORE

from .by_hand import ANSWER, CLEAN, CONTRAST, CORRUPTED, WRONG


@on_each_device
@pytest.mark.parametrize(("style", "direction"), in_turn(CORE, ["denoise", "noise"]))
def test_every_map_is_that_of_the_cpu(lms, style, direction, device):
    there = deepcopy(lms[style]).to(device)
    for find in (activation_patching, attribution_patching):
        for part in PARTS:
            found, expected = (find(lm, **CONTRAST, part=part, direction=direction) for lm in (there, lms[style]))
            assert_allclose(found, expected, rtol=1e-2, atol=1e-2, err_msg=f"{find.__name__} of {part}")
    for receiver in ("logits", (1, 1, "q"), (1, 2, "k"), (1, 0, "v")):
        how = {"receiver": receiver, "direction": direction, "through_ffn": direction == "noise"}
        found, expected = (path_patching(lm, **CONTRAST, **how) for lm in (there, lms[style]))
        assert_allclose(found, expected, rtol=1e-2, atol=1e-2, err_msg=str(receiver))


@on_each_device
@pytest.mark.parametrize("style", CORE)
def test_what_the_page_asks_of_two_runs_is_that_of_the_cpu(lms, style, device):
    there, on_cpu = deepcopy(lms[style]).to(device), lms[style]
    question = PatchingQuestion(None, CLEAN, CORRUPTED, ANSWER, WRONG)
    asked = {
        "unpatched": (),
        "parts": (),
        "neurons": (1,),
        "paths": ("denoise", (1, 1, "q")),
        "path": ("noise", "logits", 0, 1),
        "estimate": ("denoise", "resid_pre", "probability"),
        "summed": ("denoise", "resid_pre", "probability", 1, 2),
    }
    assert asked.keys() == ASKED.keys()
    for name, others in asked.items():
        found, expected = (ASKED[name](lm, question, *others) for lm in (there, on_cpu))
        if isinstance(expected, Generator):
            found, expected = finished(found), finished(expected)
        for part, value in expected.items() if isinstance(expected, dict) else [(..., expected)]:
            assert_allclose(found[part], value, rtol=1e-2, atol=1e-2, err_msg=f"{name} {part}")
