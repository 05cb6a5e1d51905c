"""A run with edits is the run of a model that was built or weighted so, and leaves the model as it was."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from explorer.state.interventions import KINDS, Edit, parse_edits
from explorer.tracing.at_work import WORKS
from explorer.tracing.capture import capture
from explorer.tracing.intervening import edited, edited_steps
from model.config import RopeScaling
from model.generation.autoregressive import CachedLogits, UncachedLogits, generate
from model.layers.sinusoidal import SinusoidalPositionalEmbedding
from model.transformer_lm import TransformerLM
from tests import specimens
from tests.specimens import POSITION_EDITS, ROTATING

IDS = list(range(40, 52))
SCALINGS = [None] + [
    RopeScaling(kind=kind, factor=4, original_context_length=32) for kind in ("linear", "ntk", "llama3")
]


def rebuilt(lm: TransformerLM, **choices) -> TransformerLM:
    """A model of another config with the same weights."""
    other = TransformerLM(replace(lm.config, **choices)).eval().requires_grad_(False)
    other.load_state_dict(lm.state_dict())
    return other


def run(lm: TransformerLM, *texts: str):
    return capture(lm, IDS, parse_edits(texts))


def assert_same(trace, expected, atol: float = 1e-5):
    assert list(trace.values) == list(expected.values)
    for name, value in expected.values.items():
        assert_allclose(trace[name], value, atol=atol, err_msg=name)


def assert_clean(lm: TransformerLM):
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in lm.modules())


@pytest.mark.parametrize("style", ROTATING)
@pytest.mark.parametrize("by", [1, 20, 500])
def test_rotary_positions_may_all_be_shifted_and_no_score_changes(lms, style, by):
    plain, shifted = run(lms[style]), run(lms[style], f"rope.angles*shift*{by}")
    for name in ("blocks.{}.attn.scores", "blocks.{}.resid_post"):
        for layer in range(2):
            assert_allclose(shifted[name.format(layer)], plain[name.format(layer)], atol=1e-4)
    assert np.abs(shifted["blocks.0.attn.q_rot"] - plain["blocks.0.attn.q_rot"]).max() > 0.1


@pytest.mark.parametrize("style", ["gpt", "learned"])
def test_positions_that_are_added_may_not(lms, style):
    plain, shifted = run(lms[style]), run(lms[style], "position_embed*shift*5")
    assert np.abs(shifted["blocks.0.attn.scores"] - plain["blocks.0.attn.scores"]).max() > 0.1


@pytest.mark.parametrize("style", ROTATING)
@pytest.mark.parametrize("by", [7, 4096])
def test_shifted_angles_are_those_of_the_later_positions(lms, style, by):
    longer = rebuilt(lms[style], context_length=by + len(IDS))
    expected = longer.rope.table[by : by + len(IDS)]
    assert_allclose(run(lms[style], f"rope.angles*shift*{by}")["rope.angles"], expected, rtol=1e-6)


@pytest.mark.parametrize("by", [7, 4096])
def test_shifted_waves_are_those_of_the_later_positions_beyond_the_table_too(lms, by):
    lm = lms["gpt"]
    expected = SinusoidalPositionalEmbedding(by + len(IDS), lm.config.d_model).table[by:]
    assert_allclose(run(lm, f"position_embed*shift*{by}")["position_embed"], expected, atol=1e-6)


@pytest.mark.parametrize("style", ["rope", "gpt", "learned"])
def test_a_shift_is_what_the_model_computes_for_tokens_at_those_positions(lms, style):
    lm = lms[style]
    with torch.inference_mode():
        expected = lm(torch.tensor([IDS]), token_positions=torch.arange(5, 5 + len(IDS))[None])[0]
    tap = "rope.angles" if style == "rope" else "position_embed"
    assert_allclose(run(lm, f"{tap}*shift*5")["logits"], expected, atol=1e-5)


def test_learned_positions_end_with_their_table(lms):
    last = lms["learned"].config.context_length - len(IDS)
    run(lms["learned"], f"position_embed*shift*{last}")
    with pytest.raises(ValueError, match="learned positions 0 to 31 and knows no others, got 32"):
        run(lms["learned"], f"position_embed*shift*{last + 1}")
    assert_clean(lms["learned"])


@pytest.mark.parametrize("theta", [1, 500, 1e6])
@pytest.mark.parametrize("scaling", SCALINGS, ids=lambda scaling: scaling and scaling.kind)
def test_another_base_is_a_model_built_with_it(lms, theta, scaling):
    lm = rebuilt(lms["rope"], rope_scaling=scaling)
    assert_same(run(lm, f"rope.angles*base*{theta}"), run(rebuilt(lm, rope_theta=theta)))


@pytest.mark.parametrize("style", ROTATING)
def test_with_the_rotation_off_it_is_a_model_without_positions(lms, style):
    off = run(lms[style], "rope.angles*zero")
    without = run(rebuilt(lms[style], position="none"))
    for name, value in without.values.items():
        assert_allclose(off[name], value, atol=1e-5, err_msg=name)
    for vector in ("q", "k"):
        assert_array_equal(off[f"blocks.1.attn.{vector}_rot"], off[f"blocks.1.attn.{vector}"])


def test_a_shift_and_a_base_are_both_followed_in_either_order(lms):
    edits = "rope.angles*shift*5", "rope.angles*base*500", "rope.angles.1*scale*0.5"
    other = rebuilt(lms["rope"], rope_theta=500.0)
    expected = other.rope.table[5 : 5 + len(IDS)].clone()
    expected[:, 1] *= 0.5
    for some in (edits, edits[::-1]):
        assert_allclose(run(lms["rope"], *some)["rope.angles"], expected, rtol=1e-6)


def test_a_silenced_head_is_one_whose_columns_of_the_output_projection_are_zero(lms, style):
    without = deepcopy(lms[style])
    d = without.config.d_head
    without.blocks[0].attn.o_proj.weight[:, d : 2 * d] = 0
    silenced, expected = run(lms[style], "blocks.0.attn.z.1*zero"), run(without)
    assert not silenced["blocks.0.attn.z"][1].any()
    names = list(expected.values)
    for name in names[names.index("blocks.0.attn.out") :]:
        assert_allclose(silenced[name], expected[name], atol=1e-5, err_msg=name)


def test_a_silenced_neuron_is_one_whose_column_of_the_down_projection_is_zero(lms, style):
    without = deepcopy(lms[style])
    without.blocks[1].ffn.down_proj.weight[:, 7] = 0
    assert_allclose(run(lms[style], "blocks.1.ffn.hidden.7*zero")["logits"], run(without)["logits"], atol=1e-5)


def test_a_sublayer_may_be_scaled(lms):
    louder = deepcopy(lms["rope"])
    louder.blocks[0].ffn.down_proj.weight *= -2.5
    assert_allclose(run(lms["rope"], "blocks.0.ffn.out*scale*-2.5")["logits"], run(louder)["logits"], atol=1e-5)


def test_what_was_computed_before_the_edit_is_as_it_was(lms, style):
    plain, changed = run(lms[style]), run(lms[style], "blocks.1.attn.pattern.2*scale*0.5")
    names = list(plain.values)
    place = names.index("blocks.1.attn.pattern")
    for name in names[:place]:
        assert_array_equal(changed[name], plain[name], err_msg=name)
    assert_array_equal(changed[names[place]][2], plain[names[place]][2] * np.float32(0.5))
    assert_array_equal(changed[names[place]][:2], plain[names[place]][:2])


def test_every_value_can_be_changed(lms, style):
    plain = run(lms[style])
    for tap in plain.values:
        changed = run(lms[style], f"{tap}.0*zero")
        part = changed[tap][0] if changed[tap].ndim == 3 else changed[tap][:, 0]
        assert not part.any(), tap
        assert tap == "logits" or not np.array_equal(changed["logits"], plain["logits"]), tap


def test_the_trace_says_what_was_changed_and_the_next_one_is_as_before(lms, style):
    before = run(lms[style])
    changed = run(lms[style], "embed*scale*2", "blocks.0.attn.z.0*zero")
    assert changed.edits == (Edit("embed", "scale", 2), Edit("blocks.0.attn.z", "zero", index=0))
    after = run(lms[style])
    assert after.edits == () and after.baseline is None
    for name, value in before.values.items():
        assert_array_equal(after[name], value, err_msg=name)
    assert_clean(lms[style])


@pytest.mark.parametrize(
    ("text", "message"),
    [("position_embed*zero", "no value position_embed"), ("blocks.0.attn.z.3*zero", "attn.z has heads 0 to 2, got 3")],
)
def test_what_the_model_lacks_is_refused_before_it_runs(tiny_lm, text, message):
    with pytest.raises(ValueError, match=message):
        run(tiny_lm, "embed*scale*2", text)
    assert_clean(tiny_lm)


def test_the_edits_are_gone_after_an_exception_in_the_pass(tiny_lm):
    def fail(module, inputs):
        raise RuntimeError("in the middle")

    handle = tiny_lm.blocks[1].ffn.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        run(tiny_lm, "embed*scale*2")
    handle.remove()
    assert_clean(tiny_lm)


EDITS_OF_GENERATION = [
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
    "blocks.0.ffn.hidden.3@8-12*clamp*3~blocks.1.ffn.up*clamp*0.5",
    "blocks.0.ffn_norm*norm*none~blocks.1.attn_norm*norm*layernorm",
    "blocks.0.resid_post@3.6-10.25-*add*unembed.17*2~blocks.1.attn.out*remove*neuron.0.3",
    "blocks.0.attn.v.1@1.9-11*zero~embed@20-*scale*-1",
]
PROMPT = 5


def generation_edits() -> Iterator:
    """Each kind of model with its own edit of positions, and with those of the others that name what it has. In the
    core suite is each edit where it first comes."""
    met = set()
    for style, lm in specimens.models().items():
        for text in [POSITION_EDITS[lm.config.position], *EDITS_OF_GENERATION]:
            if all(edit.tap in lm.taps for edit in parse_edits(text)):
                yield pytest.param(style, text, marks=pytest.mark.exhaustive if text in met else ())
                met.add(text)


@pytest.mark.parametrize(("style", "text"), list(generation_edits()))
def test_with_and_without_a_cache_the_edited_logits_are_those_of_the_capture(lms, style, text):
    lm, edits = lms[style], tuple(edit.of_prompt(range(100, 100 + PROMPT)) for edit in parse_edits(text))
    cached, uncached = CachedLogits(lm), UncachedLogits(lm)
    for length in range(PROMPT, 36):  # past the context of 32 the window moves
        ids = [*range(100, 100 + length)]
        with edited(lm, edits):
            both = cached(ids), uncached(ids)
        assert_allclose(*both, atol=1e-4)
        if length % 10 == 0 and length <= 32:
            assert_allclose(both[0], capture(lm, ids, edits)["logits"][-1], atol=1e-4)


def test_steps_are_edited_whichever_thread_asks_for_them_and_between_them_nothing_is(lms):
    lm, edits = lms["rope"], parse_edits("blocks.0.attn.out*scale*-3")

    def written(steps) -> list[int]:
        return [step.token_id for step in steps]

    def plain():
        return generate(lm, IDS, max_new_tokens=12, seed=3)

    with edited(lm, edits):
        expected = written(plain())
    unchanged = written(plain())
    assert expected != unchanged
    got, steps = [], edited_steps(lm, edits, plain())
    for _ in range(12):
        with ThreadPoolExecutor(1) as pool:
            got.append(pool.submit(next, steps).result())
        assert_clean(lm)
    assert written(got) == expected
    assert written(steps) == []
    assert written(edited_steps(lm, (), plain())) == unchanged


def test_an_edit_that_does_not_fit_ends_the_steps(lms):
    steps = edited_steps(lms["gpt"], parse_edits("rope.angles*zero"), generate(lms["gpt"], IDS, max_new_tokens=3))
    with pytest.raises(ValueError, match=r"no value rope\.angles"):
        next(steps)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("text", EDITS_OF_GENERATION[1:] + ["rope.angles*base*500"])
def test_a_gpu_computes_the_same(tiny_lm, text):
    on_cpu, on_gpu = run(tiny_lm, text), run(tiny_lm.to("cuda"), text)
    assert_same(on_gpu, on_cpu, atol=1e-3)


def test_every_kind_of_change_is_made_somehow():
    assert set(WORKS) == set(KINDS.values())


def test_a_mean_is_over_the_prompt_and_leaves_what_comes_later(lms, style):
    """And without a prompt over the whole of the first pass."""
    lm, name = lms[style], "blocks.1.attn.z"
    (mean,) = parse_edits(f"{name}.1*mean")
    plain, changed = capture(lm, IDS), capture(lm, IDS, [mean.of_prompt(IDS[:4])])
    z = plain[name].copy()
    z[1, :4] = z[1, :4].mean(0)
    assert_allclose(changed[name], z, atol=1e-6)
    assert_allclose(
        capture(lm, IDS, [mean])[name][1], np.broadcast_to(plain[name][1].mean(0), plain[name][1].shape), atol=1e-6
    )
    with pytest.raises(ValueError, match="over the prompt’s 13 tokens, and the model sees only 12"):
        capture(lm, IDS, [mean.of_prompt(range(13))])
    assert_clean(lm)


def test_two_threads_hold_to_their_own_positions(lms):
    """One goes on where the other begins anew: what a pass knows is its own thread's."""
    lm, texts = lms["rope"], ("blocks.0.resid_mid@3.8-*scale*3", "blocks.0.resid_mid@1.6*add*unembed.3*2")
    expected = [
        [step.token_id for step in edited_steps(lm, parse_edits(text), generate(lm, IDS, max_new_tokens=12, seed=1))]
        for text in texts
    ]
    for _ in range(3):
        with ThreadPoolExecutor(2) as pool:
            steps = [
                edited_steps(lm, parse_edits(text), generate(lm, IDS, max_new_tokens=12, seed=1)) for text in texts
            ]
            got = list(pool.map(lambda some: [step.token_id for step in some], steps))
        assert got == expected
    assert_clean(lm)


def test_another_thread_s_pass_in_the_middle_moves_no_position(lms):
    lm, edits = lms["rope"], parse_edits("blocks.0.resid_mid@12*scale*3")
    expected = capture(lm, [*IDS, 7], edits)["logits"][-1]
    with edited(lm, edits):
        cached = CachedLogits(lm)
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
