"""Hooks are shared by all threads that use a model: each capture must see its own pass alone."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from explorer.state.interventions import parse_edits
from explorer.tracing.capture import capture
from explorer.tracing.intervening import edited, edited_steps
from model.generation.autoregressive import generate

CAPTURES, GENERATIONS, WORKERS = 24, 8, 6


@pytest.fixture
def restless():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_captures_and_generations_side_by_side_do_not_mix(tiny_lm, tiny_config, restless):
    random = np.random.default_rng(0)
    # Different texts of one length: a value of another pass would not be told by its shape.
    prompts = [tuple(random.integers(tiny_config.vocab_size, size=9).tolist()) for _ in range(5)]

    def captured(i: int):
        return capture(tiny_lm, prompts[i % len(prompts)])

    def generated(i: int) -> list[int]:
        return [step.token_id for step in generate(tiny_lm, prompts[i % len(prompts)], max_new_tokens=12, seed=i)]

    alone = [captured(i) for i in range(len(prompts))]
    generated_alone = [generated(i) for i in range(GENERATIONS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        generations = [pool.submit(generated, i) for i in range(GENERATIONS)]
        captures = [pool.submit(captured, i) for i in range(CAPTURES)]

    for i, future in enumerate(captures):
        expected = alone[i % len(prompts)]
        assert list(future.result().values) == list(expected.values)
        for name, value in expected.values.items():
            np.testing.assert_allclose(future.result()[name], value, atol=1e-5, err_msg=f"{name} of capture {i}")
    assert [future.result() for future in generations] == generated_alone
    assert not any(module._forward_hooks for module in tiny_lm.modules())


def test_the_hooks_of_a_capture_ignore_a_pass_of_another_thread(tiny_lm):
    """The same without luck: the other pass runs to its end in the middle of the capture."""
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


def test_the_edits_of_a_thread_change_no_pass_of_another(tiny_lm, restless):
    ids = (1, 2, 3, 4, 5, 6)
    texts = ["", "rope.angles*zero", "rope.angles*base*500", "blocks.0.attn.z.1*zero", "blocks.1.ffn.out*scale*-2"]
    changes = [parse_edits(text) for text in texts]

    def captured(i: int):
        return capture(tiny_lm, ids, changes[i % len(changes)])

    def generated(i: int) -> list[int]:
        steps = generate(tiny_lm, ids, max_new_tokens=8, seed=i)
        return [step.token_id for step in edited_steps(tiny_lm, changes[i % len(changes)], steps)]

    alone = [captured(i) for i in range(len(changes))]
    generated_alone = [generated(i) for i in range(GENERATIONS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        generations = [pool.submit(generated, i) for i in range(GENERATIONS)]
        captures = [pool.submit(captured, i) for i in range(CAPTURES)]

    for i, future in enumerate(captures):
        for name, value in alone[i % len(changes)].values.items():
            np.testing.assert_allclose(future.result()[name], value, atol=1e-5, err_msg=f"{name} of capture {i}")
    assert [future.result() for future in generations] == generated_alone
    assert not any(module._forward_hooks for module in tiny_lm.modules())


def test_the_edits_of_a_capture_leave_a_pass_of_another_thread_alone(tiny_lm):
    """The same without luck: the other pass runs to its end in the middle of the edited capture."""
    expected, others = capture(tiny_lm, [1, 2, 3]), []

    def run_another(module, inputs):
        handle.remove()
        with ThreadPoolExecutor(1) as pool:
            others.append(pool.submit(capture, tiny_lm, [1, 2, 3]).result())

    handle = tiny_lm.blocks[1].register_forward_pre_hook(run_another)
    changed = capture(tiny_lm, [1, 2, 3], parse_edits("rope.angles*zero~blocks.1.attn.z*zero"))
    assert not changed["blocks.1.attn.z"].any()
    for name, value in expected.values.items():
        np.testing.assert_array_equal(others[0][name], value, err_msg=name)


def test_edits_that_end_while_a_pass_of_another_thread_begins_leave_it_alone(tiny_lm):
    """PyTorch has looked up their hooks by then, and calls them still."""
    expected = capture(tiny_lm, [1, 2, 3])
    begun, ended = threading.Event(), threading.Event()

    def hold_edits():
        with edited(tiny_lm, parse_edits("blocks.0.attn.z.1*zero")):
            begun.set()
            ended.wait(20)

    with ThreadPoolExecutor(1) as pool:

        def end_them(module, inputs):
            handle.remove()
            ended.set()
            held.result()

        handle = tiny_lm.register_forward_pre_hook(end_them)
        held = pool.submit(hold_edits)
        assert begun.wait(20)
        trace = capture(tiny_lm, [1, 2, 3])
    for name, value in expected.values.items():
        np.testing.assert_array_equal(trace[name], value, err_msg=name)
