"""The bundled model's behaviour on the prompt pairs."""

import numpy as np
import pytest

from explorer import activation_patching
from explorer.lessons.example_prompts import PROMPT_PAIRS, PatchingPromptPair
from explorer.tracing.patching.patching_setup import PatchingSetup
from model.checkpoint import load_checkpoint
from tests.exhaustive import first_in_core
from tests.subtest_loops import subtest_each


@pytest.fixture(scope="module")
def bundled_model():
    return load_checkpoint("llama-fables")


def make_setup(bundled, pair: PatchingPromptPair, **options) -> PatchingSetup:
    lm, tokenizer = bundled
    answer, wrong = (tokenizer.vocabulary.index(text) for text in (pair.answer, pair.wrong))
    return PatchingSetup(lm, tokenizer.encode(pair.clean), tokenizer.encode(pair.corrupted), answer, wrong, **options)


@subtest_each("pair", PROMPT_PAIRS, ids=lambda pair: pair.name)
def test_each_prompt_predicts_its_answer(bundled_model, pair):
    lm, tokenizer = bundled_model
    setup = make_setup(bundled_model, pair)
    for token_ids, answer in ((setup.clean_ids, setup.answer), (setup.corrupted_ids, setup.wrong)):
        logits = lm(setup.batch(token_ids))[0, -1]
        assert int(logits.argmax()) == answer, tokenizer.vocabulary[int(logits.argmax())]
    clean, corrupted = setup.unpatched_metrics
    assert clean > 0.5 and corrupted < -0.5


@subtest_each("pair", first_in_core(PROMPT_PAIRS), ids=lambda pair: pair.name)
@pytest.mark.exhaustive
def test_effects_move_from_differing_token_to_last_position(bundled_model, pair):
    setup = make_setup(bundled_model, pair)
    args = setup.lm, setup.clean_ids, setup.corrupted_ids, setup.answer, setup.wrong
    stream = activation_patching(*args, part="resid_pre")  # (L, T)
    differing_positions = [
        i for i, (a, b) in enumerate(zip(setup.clean_ids, setup.corrupted_ids, strict=True)) if a != b
    ]
    assert (
        int(np.abs(stream[0]).argmax()) in differing_positions and len(setup.clean_ids) - 1 not in differing_positions
    )
    assert stream[-1, -1] > 0.2 > abs(stream[0, -1])
    assert activation_patching(*args, part="attn.z").max() > 0.1


def test_pairs_are_many_and_unique():
    assert len(PROMPT_PAIRS) >= 6
    assert len({pair.name for pair in PROMPT_PAIRS}) == len(PROMPT_PAIRS)
