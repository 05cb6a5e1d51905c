"""Each pair does on the bundled model what it is there for."""

import numpy as np
import pytest

from explorer import activation_patching
from explorer.lessons.prompt_pairs import PROMPT_PAIRS, PromptPair
from explorer.tracing.patching.contrast import Contrast
from model.checkpoint import load_checkpoint
from tests.exhaustive import first_of


@pytest.fixture(scope="module")
def bundled():
    return load_checkpoint("llama-fables")


def contrast_of(bundled, pair: PromptPair, **how) -> Contrast:
    lm, tokenizer = bundled
    answer, wrong = (tokenizer.vocabulary.index(text) for text in (pair.answer, pair.wrong))
    return Contrast(lm, tokenizer.encode(pair.clean), tokenizer.encode(pair.corrupted), answer, wrong, **how)


@pytest.mark.parametrize("pair", PROMPT_PAIRS, ids=lambda pair: pair.name)
def test_each_prompt_has_the_answer_of_its_own(bundled, pair):
    lm, tokenizer = bundled
    contrast = contrast_of(bundled, pair)
    for token_ids, answer in ((contrast.clean_ids, contrast.answer), (contrast.corrupted_ids, contrast.wrong)):
        logits = lm(contrast.batch(token_ids))[0, -1]
        assert int(logits.argmax()) == answer, tokenizer.vocabulary[int(logits.argmax())]
    clean, corrupted = contrast.unpatched
    assert clean > 0.5 and corrupted < -0.5


@pytest.mark.parametrize("pair", first_of(PROMPT_PAIRS), ids=lambda pair: pair.name)
@pytest.mark.exhaustive
def test_what_decides_is_where_the_prompts_part_and_heads_carry_it_on(bundled, pair):
    contrast = contrast_of(bundled, pair)
    args = contrast.lm, contrast.clean_ids, contrast.corrupted_ids, contrast.answer, contrast.wrong
    stream = activation_patching(*args, part="resid_pre")  # (L, T)
    parts = [i for i, (a, b) in enumerate(zip(contrast.clean_ids, contrast.corrupted_ids, strict=True)) if a != b]
    assert int(np.abs(stream[0]).argmax()) in parts and len(contrast.clean_ids) - 1 not in parts
    assert stream[-1, -1] > 0.2 > abs(stream[0, -1])
    assert activation_patching(*args, part="attn.z").max() > 0.1


def test_there_are_enough_and_none_twice():
    assert len(PROMPT_PAIRS) >= 6
    assert len({pair.name for pair in PROMPT_PAIRS}) == len(PROMPT_PAIRS)
