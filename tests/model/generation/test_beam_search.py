import itertools
import math

import pytest
import torch

from model.generation.autoregressive import beam_search, generate
from tests.exhaustive import pairwise_params
from tests.subtest_loops import subtest_each

PROMPT = [5, 17, 250, 3]


@torch.no_grad()
def token_log_probabilities(lm, continuation) -> list[float]:
    """Return log p of each token after the prompt, from one pass over the whole text, without cache or beams."""
    log_p = lm(torch.tensor([[*PROMPT, *continuation]]))[0].log_softmax(-1)
    return [log_p[len(PROMPT) - 1 + i, token_id].item() for i, token_id in enumerate(continuation)]


def transformers_beam_search(lm, num_beams: int, max_new_tokens: int, length_penalty: float = 1.0, stop_tokens=()):
    """Return transformers' best sequences (N, tokens after the prompt) and their scores (N,)."""
    pytest.importorskip("transformers")
    from tests.hugging_face import as_llama

    output = as_llama(lm).generate(
        torch.tensor([PROMPT]),
        attention_mask=torch.ones(1, len(PROMPT), dtype=torch.long),
        num_beams=num_beams,
        num_return_sequences=num_beams,
        max_new_tokens=max_new_tokens,
        length_penalty=length_penalty,
        eos_token_id=list(stop_tokens) or None,
        pad_token_id=1,  # 0 would make it the stop token
        do_sample=False,
        early_stopping="never",
        return_dict_in_generate=True,
        output_scores=True,
    )
    return output.sequences[:, len(PROMPT) :].tolist(), output.sequences_scores.tolist()


@subtest_each(("num_beams", "tie_embeddings"), pairwise_params([2, 3, 8], [False, True]))
def test_hypotheses_match_transformers(make_lm, num_beams, tie_embeddings):
    lm = make_lm(tie_embeddings=tie_embeddings)
    hypotheses = beam_search(lm, PROMPT, num_beams=num_beams, max_new_tokens=12)
    sequences, scores = transformers_beam_search(lm, num_beams, 12)
    assert [list(hypothesis.token_ids) for hypothesis in hypotheses] == sequences
    assert [hypothesis.score(1.0) for hypothesis in hypotheses] == pytest.approx(scores, abs=1e-4)


@subtest_each(("length_penalty", "num_stops"), pairwise_params([-0.5, 0.0, 1.0, 2.0], [1, 3]))
def test_hypotheses_match_transformers_with_stop_tokens(make_lm, length_penalty, num_stops):
    lm = make_lm()
    unstopped = beam_search(lm, PROMPT, num_beams=4, max_new_tokens=12)
    stops = list(dict.fromkeys(hypothesis.token_ids[i] for i in (2, 4, 5) for hypothesis in unstopped))[:num_stops]
    hypotheses = beam_search(
        lm, PROMPT, num_beams=4, max_new_tokens=12, length_penalty=length_penalty, stop_tokens=set(stops)
    )
    sequences, scores = transformers_beam_search(lm, 4, 12, length_penalty, stops)
    longest = max(len(hypothesis.token_ids) for hypothesis in hypotheses)
    padded = [[*hypothesis.token_ids, *[1] * (longest - len(hypothesis.token_ids))] for hypothesis in hypotheses]
    assert padded == [sequence[:longest] for sequence in sequences]
    assert [hypothesis.score(length_penalty) for hypothesis in hypotheses] == pytest.approx(scores, abs=1e-4)
    assert length_penalty > 0 or any(len(hypothesis.token_ids) < 12 for hypothesis in hypotheses)


def test_one_beam_is_greedy_search(make_lm):
    lm = make_lm()
    (hypothesis,) = beam_search(lm, PROMPT, num_beams=1, max_new_tokens=28)
    greedy = generate(lm, PROMPT, max_new_tokens=28, temperature=0)
    assert list(hypothesis.token_ids) == [step.token_id for step in greedy]


def test_enough_beams_find_every_continuation(make_lm):
    stops = set(range(5, 300))
    every_text = [(stop,) for stop in stops] + list(itertools.product(range(5), range(300)))
    hypotheses = beam_search(make_lm(), PROMPT, num_beams=2000, max_new_tokens=2, stop_tokens=stops)
    assert {hypothesis.token_ids for hypothesis in hypotheses} == set(every_text)
    assert len(hypotheses) == len(every_text)
    assert sum(math.exp(hypothesis.log_probability) for hypothesis in hypotheses) == pytest.approx(1, abs=1e-5)


def test_log_probabilities_match_single_pass(make_lm):
    lm = make_lm()
    for hypothesis in beam_search(lm, PROMPT, num_beams=5, max_new_tokens=9):
        assert hypothesis.log_probabilities == pytest.approx(
            token_log_probabilities(lm, hypothesis.token_ids), abs=1e-4
        )
        assert hypothesis.log_probability == sum(hypothesis.log_probabilities)
        assert hypothesis.score(2.0) == hypothesis.log_probability / 81


def test_more_beams_find_better_hypothesis(make_lm):
    lm = make_lm()
    best = [beam_search(lm, PROMPT, num_beams=n, max_new_tokens=6)[0].log_probability for n in (1, 4, 300)]
    assert best[0] <= best[1] <= best[2]


def test_stop_token_ends_hypothesis(make_lm):
    lm = make_lm()
    stop = beam_search(lm, PROMPT, num_beams=3, max_new_tokens=6)[0].token_ids[3]
    for hypothesis in beam_search(lm, PROMPT, num_beams=3, max_new_tokens=12, stop_tokens={stop}):
        assert stop not in hypothesis.token_ids[:-1]


@pytest.mark.parametrize(
    ("prompt", "settings", "message"),
    [
        ([], {}, "at least one of each, got 0 prompt tokens"),
        (PROMPT, {"num_beams": 0}, "got 4 prompt tokens, 0 beams"),
        (PROMPT, {"max_new_tokens": 0}, "3 beams and 0 new tokens"),
        (PROMPT, {"max_new_tokens": 30}, "4 prompt and 30 new tokens do not fit the model's context of 32"),
    ],
)
def test_invalid_arguments_are_refused(make_lm, prompt, settings, message):
    with pytest.raises(ValueError, match=message):
        beam_search(make_lm(), prompt, **({"num_beams": 3, "max_new_tokens": 5} | settings))


def test_beam_search_fills_context(make_lm):
    (best, *_) = beam_search(make_lm(), PROMPT, num_beams=2, max_new_tokens=29)
    assert len(best.token_ids) == 29
