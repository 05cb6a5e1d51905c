"""What an answer may cost."""

import time

import pytest

from explorer.tracing.runs import Runs
from explorer.tracing.work import GivenUp, TooMuch, Work, go_on, tokens_at_once
from explorer.web.answers.endpoints import Endpoints
from explorer.web.events.opening import Opening
from model.config import ModelConfig


def test_work_for_nobody_in_particular_has_no_bounds():
    go_on(tokens=10**9)


def test_an_answer_reads_so_many_tokens():
    work = Work(most_tokens=100, most_seconds=60)
    with work.counted():
        go_on(tokens=60)
        go_on(tokens=40)
        with pytest.raises(TooMuch, match="at most 100 tokens"):
            go_on(tokens=1)
    go_on(tokens=1000)


def test_an_answer_computes_for_so_many_seconds_whoever_else_does():
    with Work(most_tokens=1, most_seconds=0.2).counted():
        time.sleep(0.3)
        go_on()
        end = time.thread_time() + 0.2
        while time.thread_time() < end:
            pass
        with pytest.raises(TooMuch, match="at most 0.2 seconds"):
            go_on()


def test_nothing_more_is_computed_for_who_is_gone(library):
    endpoints = Endpoints(Runs(library))
    state = Opening(endpoints.runs).run_of("rope", "an owl that nobody asked").as_dict()
    work = Work(most_tokens=10**6, most_seconds=60, given_up=True)
    with work.counted(), pytest.raises(GivenUp):
        endpoints.answer("show", state)
    assert work.tokens == len(state["prompt"])


def test_a_tree_that_is_too_large_is_told_beside_the_pictures(library):
    endpoints = Endpoints(Runs(library))
    state = Opening(endpoints.runs).run_of("rope", "a tree of many branches").as_dict() | {"view": "attention"}
    state["branches"] = "~".join(f"{first}.{second}" for first in range(5, 9) for second in range(5, 9))
    length = len(state["prompt"]) + 2
    with Work(most_tokens=4 * length, most_seconds=60).counted():
        endpoints.answer("show", state)
    told = []
    for _ in range(6):  # what was computed is kept: each time it comes further
        with Work(most_tokens=4 * length, most_seconds=60).counted():
            contents = endpoints.answer("show", state, 1)["contents"]
        told.append(contents.get("problem"))
        assert any(name.startswith("attention-") for name in contents)
    assert "reads at most" in told[0] and told[-1] is None and contents["branches"]


@pytest.mark.parametrize(
    ("d_model", "times", "least", "most"), [(192, 1, 512, 512), (192, 3, 170, 170), (2048, 1, 19, 19)]
)
def test_a_piece_is_as_long_as_the_model_allows(d_model, times, least, most):
    config = ModelConfig(
        vocab_size=4096, context_length=256, d_model=d_model, num_layers=6, num_heads=8, d_ff=4 * d_model
    )
    assert least <= tokens_at_once(config, times) <= most
    assert tokens_at_once(config, 10**6) == 1
