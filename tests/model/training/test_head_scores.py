import pytest
import torch
import torch.nn.functional as F

from model.training.evaluation import copying_head_scores, induction_targets

PERIOD = 16  # half of the tiny model's context


def constant_pattern(earlier: int):
    """Return a hook: every query attends only to the key `earlier` positions before it, or to the first."""

    def hook(tap, inputs, pattern):
        keys = (torch.arange(pattern.shape[-1]) - earlier).clamp(min=0)
        return F.one_hot(keys, pattern.shape[-1]).to(pattern).expand_as(pattern)

    return hook


@pytest.mark.parametrize(
    ("earlier", "previous_token", "induction"), [(1, 1, 0), (PERIOD - 1, 0, 1), (PERIOD, 0, 0), (0, 0, 0)]
)
def test_scores_identify_head_by_attended_position(tiny_lm, hook_modules, earlier, previous_token, induction):
    """The induction target is the position after the token's first occurrence: period - 1 positions before."""
    with hook_modules(tiny_lm, {"blocks.1.attn.pattern": constant_pattern(earlier)}):
        scores = copying_head_scores(tiny_lm)
    chance = 1 / (2 * PERIOD - 1)  # share of queries at the first position, which may attend to the target
    assert scores["previous_token"].shape == scores["induction"].shape == (2, 3)
    assert scores["previous_token"][1].tolist() == pytest.approx([previous_token] * 3, abs=chance + 1e-6)
    assert scores["induction"][1].tolist() == pytest.approx([induction] * 3, abs=1e-6)
    assert 0 < scores["previous_token"][0].max() < 0.5


def test_scoring_removes_its_hooks(tiny_lm):
    copying_head_scores(tiny_lm)
    assert not any(block.attn.pattern.has_hooks for block in tiny_lm.blocks)


def test_induction_targets_require_equal_tokens():
    """a b c a b b: the second a points at the first b, the second b at c; the third b's target would be itself."""
    rows, queries, keys = induction_targets(torch.tensor([[1, 2, 3, 1, 2, 2], [1, 2, 3, 4, 5, 6]]))
    assert list(zip(rows.tolist(), queries.tolist(), keys.tolist(), strict=True)) == [(0, 3, 1), (0, 4, 2)]
