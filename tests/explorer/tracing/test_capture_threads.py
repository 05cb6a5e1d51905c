"""Captures in several threads: hooks are shared, and each capture sees only its own pass."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from explorer.interventions import parse_interventions
from explorer.tracing.capture import capture
from explorer.tracing.forward_hooks import apply_interventions, generate_with_interventions
from model.generation.autoregressive import generate

CAPTURES, GENERATIONS, WORKERS = 24, 8, 6


@pytest.fixture
def fast_thread_switching():
    """Make threads switch as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_concurrent_captures_and_generations_do_not_mix(tiny_lm, tiny_config, fast_thread_switching):
    random = np.random.default_rng(0)
    # Different texts of equal length: the shape would not reveal another pass's value.
    prompts = [tuple(random.integers(tiny_config.vocab_size, size=9).tolist()) for _ in range(5)]

    def capture_nth(i: int):
        return capture(tiny_lm, prompts[i % len(prompts)])

    def generate_nth(i: int) -> list[int]:
        return [step.token_id for step in generate(tiny_lm, prompts[i % len(prompts)], max_new_tokens=12, seed=i)]

    expected_traces = [capture_nth(i) for i in range(len(prompts))]
    generated_alone = [generate_nth(i) for i in range(GENERATIONS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        generations = [pool.submit(generate_nth, i) for i in range(GENERATIONS)]
        captures = [pool.submit(capture_nth, i) for i in range(CAPTURES)]

    for i, future in enumerate(captures):
        expected = expected_traces[i % len(prompts)]
        assert list(future.result().values) == list(expected.values)
        for name, value in expected.values.items():
            np.testing.assert_allclose(future.result()[name], value, atol=1e-5, err_msg=f"{name} of capture {i}")
    assert [future.result() for future in generations] == generated_alone
    assert not any(module._forward_hooks for module in tiny_lm.modules())


def test_capture_ignores_passes_of_other_threads(tiny_lm):
    """Deterministic: the other thread's pass runs completely in the middle of the capture."""
    expected = capture(tiny_lm, [1, 2, 3])

    def run_another(module, inputs):
        handle.remove()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: list(generate(tiny_lm, [7, 8, 9], max_new_tokens=2, seed=0))).result()
            pool.submit(capture, tiny_lm, [7, 8, 9]).result()

    handle = tiny_lm.blocks[1].register_forward_pre_hook(run_another)
    trace = capture(tiny_lm, [1, 2, 3])
    for name, value in expected.values.items():
        np.testing.assert_array_equal(trace[name], value, err_msg=name)


def test_concurrent_interventions_do_not_mix(tiny_lm, fast_thread_switching):
    ids = (1, 2, 3, 4, 5, 6)
    texts = ["", "rope.angles*zero", "rope.angles*base*500", "blocks.0.attn.z.1*zero", "blocks.1.ffn.out*scale*-2"]
    changes = [parse_interventions(text) for text in texts]

    def capture_nth(i: int):
        return capture(tiny_lm, ids, changes[i % len(changes)])

    def generate_nth(i: int) -> list[int]:
        steps = generate(tiny_lm, ids, max_new_tokens=8, seed=i)
        return [step.token_id for step in generate_with_interventions(tiny_lm, changes[i % len(changes)], steps)]

    expected_traces = [capture_nth(i) for i in range(len(changes))]
    generated_alone = [generate_nth(i) for i in range(GENERATIONS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        generations = [pool.submit(generate_nth, i) for i in range(GENERATIONS)]
        captures = [pool.submit(capture_nth, i) for i in range(CAPTURES)]

    for i, future in enumerate(captures):
        for name, value in expected_traces[i % len(changes)].values.items():
            np.testing.assert_allclose(future.result()[name], value, atol=1e-5, err_msg=f"{name} of capture {i}")
    assert [future.result() for future in generations] == generated_alone
    assert not any(module._forward_hooks for module in tiny_lm.modules())


def test_interventions_skip_passes_of_other_threads(tiny_lm):
    """Deterministic: the other thread's pass runs completely in the middle of the edited capture."""
    expected, others = capture(tiny_lm, [1, 2, 3]), []

    def run_another(module, inputs):
        handle.remove()
        with ThreadPoolExecutor(1) as pool:
            others.append(pool.submit(capture, tiny_lm, [1, 2, 3]).result())

    handle = tiny_lm.blocks[1].register_forward_pre_hook(run_another)
    changed = capture(tiny_lm, [1, 2, 3], parse_interventions("rope.angles*zero~blocks.1.attn.z*zero"))
    assert not changed["blocks.1.attn.z"].any()
    for name, value in expected.values.items():
        np.testing.assert_array_equal(others[0][name], value, err_msg=name)


def test_interventions_ending_during_another_pass_do_not_apply(tiny_lm):
    """PyTorch has already collected the hooks at that time and still calls them."""
    expected = capture(tiny_lm, [1, 2, 3])
    started, ended = threading.Event(), threading.Event()

    def hold_edits():
        with apply_interventions(tiny_lm, parse_interventions("blocks.0.attn.z.1*zero")):
            started.set()
            ended.wait(20)

    with ThreadPoolExecutor(1) as pool:

        def end_edits(module, inputs):
            handle.remove()
            ended.set()
            edits_future.result()

        handle = tiny_lm.register_forward_pre_hook(end_edits)
        edits_future = pool.submit(hold_edits)
        assert started.wait(20)
        trace = capture(tiny_lm, [1, 2, 3])
    for name, value in expected.values.items():
        np.testing.assert_array_equal(trace[name], value, err_msg=name)
