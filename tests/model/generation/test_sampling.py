import numpy as np
import pytest
import torch

from model.generation.sampling import sampling_distribution, sampling_stages, top_k_indices
from tests.subtest_loops import subtest_each


@subtest_each("temperature", [0.05, 0.8, 1.0, 3.0])
@subtest_each("top_k", [None, 1, 7, 199, 200, 1000])
def test_temperature_and_top_k_match_transformers(logits, temperature, top_k):
    transformers = pytest.importorskip("transformers")
    scores = transformers.TemperatureLogitsWarper(temperature)(None, torch.from_numpy(logits)[None].double())
    if top_k is not None:
        scores = transformers.TopKLogitsWarper(top_k)(None, scores)
    expected = torch.softmax(scores[0], dim=-1).numpy()
    np.testing.assert_allclose(sampling_distribution(logits, temperature, top_k), expected, rtol=1e-9, atol=1e-12)


def test_top_k_of_0_keeps_all(logits):
    assert (sampling_distribution(logits, 0.7, 0) == sampling_distribution(logits, 0.7, None)).all()


@subtest_each("top_k", [1, 2, 3, 4, 5, 6])
def test_top_k_keeps_first_of_equal_logits(top_k):
    logits = np.array([1.0, 2.0, 2.0, 0.0, 2.0, 2.0, 5.0])
    in_order = [6, 1, 2, 4, 5, 0, 3]
    probabilities = sampling_distribution(logits, 1.0, top_k)
    assert set(np.flatnonzero(probabilities)) == set(in_order[:top_k])
    assert probabilities.sum() == pytest.approx(1)


def transformers_distribution(
    logits, temperature=1.0, top_k=None, top_p=None, min_p=None, repetition_penalty=1.0, previous=()
):
    """Return the distribution (V,) of transformers' warpers, in double precision."""
    transformers = pytest.importorskip("transformers")
    warpers = [transformers.TemperatureLogitsWarper(temperature)]
    if repetition_penalty != 1:
        warpers.insert(0, transformers.RepetitionPenaltyLogitsProcessor(repetition_penalty))
    warpers += [
        warper(value)
        for warper, value in (
            (transformers.TopKLogitsWarper, top_k),
            (transformers.TopPLogitsWarper, top_p),
            (transformers.MinPLogitsWarper, min_p),
        )
        if value is not None
    ]
    scores = torch.from_numpy(logits)[None].double()
    for warper in warpers:
        scores = warper(torch.tensor([previous], dtype=torch.long), scores)
    return torch.softmax(scores[0], dim=-1).numpy()


SINGLE_SETTINGS = [{"top_p": p} for p in (0.0, 0.1, 0.5, 0.9, 0.999)] + [{"min_p": p} for p in (0.001, 0.1, 0.5, 1.0)]
SINGLE_SETTINGS += [{"repetition_penalty": penalty, "previous": [3, 90, 3, 199]} for penalty in (0.5, 1.2, 5.0)]
COMBINED_SETTINGS = [
    {"temperature": 0.7, "top_k": 20, "top_p": 0.8},
    {"temperature": 1.7, "top_p": 0.9, "min_p": 0.05},
    {"temperature": 1.3, "top_k": 50, "top_p": 0.95, "min_p": 0.02, "repetition_penalty": 1.3, "previous": [0, 7, 11]},
]


@subtest_each("settings", SINGLE_SETTINGS + COMBINED_SETTINGS, ids=str)
@subtest_each("seed", range(5))
def test_sampling_settings_match_transformers(settings, seed):
    logits = np.random.default_rng(seed).normal(scale=2, size=200).astype(np.float32)
    expected = transformers_distribution(logits, **settings)
    np.testing.assert_allclose(sampling_distribution(logits, **settings), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("settings", [{"min_p": 0.3}, {"top_k": 5, "min_p": 0.3}, {"top_p": 0.99}], ids=str)
def test_equal_logits_match_transformers(settings):
    logits = np.array([3.0, 1.0, 3.0, 2.0, 2.0, -9.0, -9.0], np.float32)
    expected = transformers_distribution(logits, **settings)
    np.testing.assert_allclose(sampling_distribution(logits, **settings), expected, rtol=1e-9)


@pytest.mark.parametrize(("top_p", "kept"), [(0.1, [1]), (0.25, [1]), (0.3, [1, 2]), (0.5, [1, 2]), (0.6, [1, 2, 4])])
def test_top_p_keeps_first_of_equal_logits(top_p, kept):
    logits = np.array([-np.inf, 0.0, 0.0, -np.inf, 0.0, 0.0])
    assert np.flatnonzero(sampling_distribution(logits, top_p=top_p)).tolist() == kept


@subtest_each("top_p", [1e-9, 0.2, 0.7, 0.95])
@subtest_each("top_k", [None, 3, 50])
def test_nucleus_is_smallest_set_reaching_top_p(logits, top_p, top_k):
    everything = sampling_distribution(logits, 1.0, top_k)
    nucleus = sampling_distribution(logits, 1.0, top_k, top_p=top_p) > 0
    assert everything[nucleus].sum() >= top_p - 1e-12
    assert everything[nucleus].sum() - everything[nucleus].min() < top_p
    assert everything[nucleus].min() >= everything[~nucleus].max()


def test_stages_record_every_step(logits):
    settings = {"top_p": 0.8, "min_p": 0.2, "repetition_penalty": 1.5}
    stages = sampling_stages(logits, 0.7, 30, previous=[4, 9], **settings)
    changed = np.flatnonzero(stages.penalised != stages.logits)
    assert changed.tolist() == [4, 9]
    for i in changed:
        assert stages.penalised[i] == pytest.approx(logits[i] / 1.5 if logits[i] > 0 else logits[i] * 1.5)
    np.testing.assert_allclose(stages.scaled_logits, stages.penalised / 0.7)
    masks = stages.in_top_k, stages.in_top_p, stages.in_min_p
    assert masks[0].sum() == 30
    assert [bool((inner <= outer).all()) for outer, inner in zip(masks, masks[1:], strict=False)] == [True, True]
    assert masks[0].sum() > masks[1].sum() > masks[2].sum() > 1
    assert ((stages.probabilities > 0) == stages.in_min_p).all()
    weights = np.exp(stages.scaled_logits[stages.in_min_p])
    np.testing.assert_allclose(stages.probabilities[stages.in_min_p], weights / weights.sum())


def test_disabled_settings_change_nothing(logits):
    stages = sampling_stages(logits)
    for stage in (stages.penalised, stages.scaled_logits):
        assert (stage == stages.logits).all()
    assert all(mask.all() for mask in (stages.in_top_k, stages.in_top_p, stages.in_min_p))
    off = sampling_stages(logits, 1.0, 0, top_p=1.0, min_p=0.0, repetition_penalty=1.0, previous=[1, 2])
    assert (off.probabilities == stages.probabilities).all()


def test_cumulative_gives_interval_ends(logits):
    stages = sampling_stages(logits, 0.9, 40)
    p, order = stages.probabilities, stages.order
    assert order[:40].tolist() == sorted(np.flatnonzero(p), key=lambda i: (-p[i], i))
    assert stages.cumulative[order[0]] == p.max()
    np.testing.assert_allclose(np.diff(stages.cumulative[order], prepend=0), p[order], atol=1e-15)
    np.testing.assert_allclose(stages.cumulative[~stages.in_min_p], 1)


def test_combined_settings_give_normalised_distribution():
    """Probabilities sum to 1, at most k are positive, and the likeliest token can always be drawn."""
    random = np.random.default_rng(6)
    for _ in range(300):
        logits = random.integers(-3, 4, size=60) * random.choice([0.3, 4.0])  # many ties
        top_k, penalty = int(random.integers(1, 70)), random.uniform(0.5, 2)
        top_p, min_p = random.uniform(size=2) ** [0.3, 3]
        previous = random.integers(60, size=8)
        settings = {"top_p": top_p, "min_p": min_p, "repetition_penalty": penalty, "previous": previous}
        stages = sampling_stages(logits, random.uniform(0.1, 2), top_k, **settings)
        assert stages.probabilities.sum() == pytest.approx(1, abs=1e-12)
        assert stages.in_top_k.sum() == min(top_k, 60)
        assert ((stages.probabilities > 0) == stages.in_min_p).all()
        assert stages.in_min_p[stages.penalised.argmax()]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_top_k_indices_are_sorted_and_prefer_first(k):
    values = np.array([3.0, 9.0, 3.0, 7.0, 3.0])
    assert top_k_indices(values, k).tolist() == sorted([1, 3, 0, 2, 4][:k])


@pytest.mark.parametrize("top_k", [None, 1, 50])
def test_temperature_0_is_argmax(logits, top_k):
    probabilities = sampling_distribution(logits, 0, top_k)
    assert probabilities[logits.argmax()] == 1
    assert np.count_nonzero(probabilities) == 1


def test_temperature_0_takes_first_of_equal_logits():
    assert sampling_distribution(np.array([0.0, 4.0, 4.0]), 0).tolist() == [0, 1, 0]


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_extreme_logits_and_temperatures_stay_finite(logits, scale):
    for probabilities in (sampling_distribution(logits, scale), sampling_distribution(logits.astype(float) * scale)):
        assert np.isfinite(probabilities).all()
        assert probabilities.sum() == pytest.approx(1)


def test_sampling_does_not_change_logits(logits):
    before = logits.copy()
    sampling_distribution(logits, 0.5, 10)
    assert (logits == before).all()


@pytest.mark.parametrize("temperature", [-0.1, float("inf"), float("-inf"), float("nan")])
def test_invalid_temperature_is_refused(logits, temperature):
    with pytest.raises(ValueError, match="temperature must be 0 or more, got"):
        sampling_distribution(logits, temperature)


def test_negative_top_k_is_refused(logits):
    with pytest.raises(ValueError, match=r"top_k must be 0 \(keep all\) or more, got -1"):
        sampling_distribution(logits, 1.0, -1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top_p": -0.1}, "top_p must be 0 to 1, got -0.1"),
        ({"top_p": 1.1}, "top_p must be 0 to 1, got 1.1"),
        ({"min_p": float("nan")}, "min_p must be 0 to 1, got nan"),
        ({"repetition_penalty": 0}, "repetition_penalty must be positive"),
        ({"repetition_penalty": float("inf")}, "repetition_penalty must be positive"),
    ],
)
def test_other_invalid_settings_are_refused(logits, settings, message):
    with pytest.raises(ValueError, match=message):
        sampling_distribution(logits, **settings)
