import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from model.training.evaluation import copying_head_scores, evaluate
from model.transformer_lm import TransformerLM
from tests.subtest_loops import subtest_each


@subtest_each("length", [2, 20, 32, 33, 34, 65, 200])
def test_every_token_after_first_is_scored_once(tiny_lm, tiny_config, length):
    """A model with uniform predictions has a loss of ln V nats per token."""
    tiny_lm.lm_head.weight.data.zero_()
    score = evaluate(tiny_lm, torch.zeros(length, dtype=torch.long), num_bytes=500, batch_size=3)
    nats = math.log(tiny_config.vocab_size)
    assert score.loss == pytest.approx(nats)
    assert score.perplexity == pytest.approx(tiny_config.vocab_size)
    assert score.bits_per_byte == pytest.approx((length - 1) * nats / math.log(2) / 500)


def test_windows_are_scored_independently(tiny_lm, tiny_config):
    ids = torch.randint(tiny_config.vocab_size, (75,))
    nats = [
        F.cross_entropy(tiny_lm(ids[None, start:end])[0], ids[start + 1 : end + 1], reduction="sum").item()
        for start, end in [(0, 32), (32, 64), (64, 74)]
    ]
    assert evaluate(tiny_lm, ids, num_bytes=1).loss == pytest.approx(sum(nats) / 74)


@pytest.fixture
def dropout_lm(tiny_config):
    return TransformerLM(replace(tiny_config, dropout=0.5))


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_disables_dropout_and_restores_mode(dropout_lm, tiny_config, training):
    ids = torch.randint(tiny_config.vocab_size, (75,))
    loss = evaluate(dropout_lm.eval(), ids, num_bytes=1).loss
    scores = copying_head_scores(dropout_lm)
    dropout_lm.train(training)
    assert evaluate(dropout_lm, ids, num_bytes=1).loss == loss
    assert torch.equal(copying_head_scores(dropout_lm)["induction"], scores["induction"])
    assert dropout_lm.training is training
