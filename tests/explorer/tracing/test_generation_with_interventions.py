"""Generation with interventions: logits equal the captures', with and without a KV cache, in any thread."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import pytest
from numpy.testing import assert_allclose

from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from explorer.tracing.forward_hooks import apply_interventions, generate_with_interventions
from model.generation.autoregressive import NextLogitsWithCache, NextLogitsWithoutCache, generate
from tests import sample_models
from tests.devices import on_each_device
from tests.exhaustive import every_nth_in_core
from tests.sample_models import POSITION_INTERVENTIONS
from tests.subtest_loops import subtest_each

from .intervention_runs import IDS, assert_clean, assert_same

GENERATION_INTERVENTIONS = [
    "rope.angles*shift*40",
    "rope.angles*zero",
    "blocks.0.attn.z.1*zero",
    "blocks.0.attn.k.0*scale*0.5",
    "blocks.1.attn.scores.1*zero",
    "blocks.1.attn.pattern.2*scale*0.5",
    "blocks.0.ffn.hidden*scale*2",
    "blocks.1.attn.z.1*mean~blocks.0.resid_mid*mean~blocks.0.attn.k.0@2-3*mean",
    "blocks.1.attn.pattern.2@7-9.20*mask*3~blocks.1.attn.pattern.0@1-*mask*0~blocks.1.attn.pattern@8*mask*2",
    "blocks.0.attn.pattern.1*drop*4~blocks.0.attn.pattern@6.21-*drop*0",
    "blocks.*.attn.pattern@9.21-*drop*2~blocks.*.attn.pattern.1@7-*mask*3~blocks.1.attn.pattern@8*mask*2",
    "blocks.0.ffn.hidden.3@8-12*clamp*3~blocks.1.ffn.up*clamp*0.5",
    "blocks.0.ffn_norm*norm*none~blocks.1.attn_norm*norm*layernorm",
    "blocks.0.attn_norm@2.7-9.21-*norm*none~blocks.1.attn_norm@3-12*norm*layernorm",
    "blocks.0.resid_post@3.6-10.25-*add*unembed.17*2~blocks.1.attn.out*remove*neuron.0.3",
    "blocks.0.attn.v.1@1.9-11*zero~embed@20-*scale*-1",
]


PROMPT = 5


def generation_cases() -> Iterator:
    """Yield pairs of a model style and an applicable intervention: one on its positions, and some of the shared ones.

    Each intervention occurs at least once.
    """
    met = set()
    for nth, (style, lm) in enumerate(sample_models.models().items()):
        for number, text in enumerate([POSITION_INTERVENTIONS[lm.config.position], *GENERATION_INTERVENTIONS]):
            if sample_models.applicable_interventions(lm, text) == [*parse_interventions(text)]:
                if number == 0 or text not in met or (number + nth) % 4 == 0:
                    yield style, text
                met.add(text)


@subtest_each(("style", "text"), list(generation_cases()))
@pytest.mark.exhaustive
def test_cached_and_uncached_logits_equal_capture(lms, style, text):
    lm, edits = lms[style], tuple(edit.for_prompt(range(100, 100 + PROMPT)) for edit in parse_interventions(text))
    cached, uncached = NextLogitsWithCache(lm), NextLogitsWithoutCache(lm)
    for length in (*range(PROMPT, 12), *range(15, 30, 5), *range(30, 36)):  # past the context of 32 the window moves
        ids = [*range(100, 100 + length)]
        with apply_interventions(lm, edits):
            logits = cached(ids)
            if length % 5 == 0 or length >= 32:
                assert_allclose(logits, uncached(ids), atol=1e-4)
        if length % 10 == 0 and length <= 32:
            assert_allclose(logits, capture(lm, ids, edits)["logits"][-1], atol=1e-4)


def test_interventions_apply_only_during_steps_in_any_thread(lms):
    lm, edits = lms["rope"], parse_interventions("blocks.0.attn.out*scale*-3")

    def step_ids(steps) -> list[int]:
        return [step.token_id for step in steps]

    def plain():
        return generate(lm, IDS, max_new_tokens=12, seed=3)

    with apply_interventions(lm, edits):
        expected = step_ids(plain())
    unchanged = step_ids(plain())
    assert expected != unchanged
    got, steps = [], generate_with_interventions(lm, edits, plain())
    for _ in range(12):
        with ThreadPoolExecutor(1) as pool:
            got.append(pool.submit(next, steps).result())
        assert_clean(lm)
    assert step_ids(got) == expected
    assert step_ids(steps) == []
    assert step_ids(generate_with_interventions(lm, (), plain())) == unchanged


def test_later_query_keeps_at_least_one_key(lms):
    """The query is identified by its position in the text, not in the pass."""
    lm = lms["rope"]
    with apply_interventions(lm, parse_interventions([f"blocks.1.attn.pattern.2@2*mask*{key}" for key in range(3)])):
        cached = NextLogitsWithCache(lm)
        cached(IDS[:2])
        with pytest.raises(ValueError, match="query 2 would have no key left to attend to"):
            cached(IDS[:3])


def test_inapplicable_intervention_is_refused(lms):
    steps = generate_with_interventions(
        lms["gpt"], parse_interventions("rope.angles*zero"), generate(lms["gpt"], IDS, max_new_tokens=3)
    )
    with pytest.raises(ValueError, match=r"no value rope\.angles"):
        next(steps)


@on_each_device
@pytest.mark.parametrize("text", every_nth_in_core(6, [*GENERATION_INTERVENTIONS, "rope.angles*base*500"]))
def test_intervention_logits_agree_with_cpu(tiny_lm, text, device):
    device_lm = deepcopy(tiny_lm).to(device)
    edits = tuple(edit.for_prompt(range(100, 100 + PROMPT)) for edit in parse_interventions(text))
    assert_same(capture(device_lm, IDS, edits), capture(tiny_lm, IDS, edits), atol=1e-3)
    with apply_interventions(tiny_lm, edits), apply_interventions(device_lm, edits):
        cached, uncached, on_cpu = (
            NextLogitsWithCache(device_lm),
            NextLogitsWithoutCache(device_lm),
            NextLogitsWithCache(tiny_lm),
        )
        for length in (PROMPT, PROMPT + 1, 30, 34):
            ids = [*range(100, 100 + length)]
            expected = on_cpu(ids)
            assert_allclose(cached(ids), expected, atol=1e-3)
            assert_allclose(uncached(ids), expected, atol=1e-3)


def test_threads_keep_separate_positions(lms):
    """Positions of a pass belong to its own thread: one thread continues while the other starts again."""
    lm, texts = lms["rope"], ("blocks.0.resid_mid@3.8-*scale*3", "blocks.0.resid_mid@1.6*add*unembed.3*2")
    expected = [
        [
            step.token_id
            for step in generate_with_interventions(
                lm, parse_interventions(text), generate(lm, IDS, max_new_tokens=12, seed=1)
            )
        ]
        for text in texts
    ]
    for _ in range(3):
        with ThreadPoolExecutor(2) as pool:
            steps = [
                generate_with_interventions(lm, parse_interventions(text), generate(lm, IDS, max_new_tokens=12, seed=1))
                for text in texts
            ]
            got = list(pool.map(lambda some: [step.token_id for step in some], steps))
        assert got == expected
    assert_clean(lm)


def test_pass_in_another_thread_moves_no_position(lms):
    lm, edits = lms["rope"], parse_interventions("blocks.0.resid_mid@12*scale*3")
    expected = capture(lm, [*IDS, 7], edits)["logits"][-1]
    with apply_interventions(lm, edits):
        cached = NextLogitsWithCache(lm)
        cached(IDS)

        def meanwhile(module, inputs):
            if threading.get_ident() != own:
                return
            with ThreadPoolExecutor(1) as pool:
                pool.submit(capture, lm, IDS[:3]).result()

        own = threading.get_ident()
        handle = lm.token_embedding.register_forward_pre_hook(meanwhile)
        try:
            got = cached([*IDS, 7])
        finally:
            handle.remove()
    assert_allclose(got, expected, atol=1e-4)
