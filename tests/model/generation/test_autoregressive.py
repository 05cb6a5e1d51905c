from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
import torch

from model.config import window_start
from model.generation.autoregressive import generate, uniform_draw
from model.generation.sampling import draw_token, sampling_distribution
from tests.exhaustive import in_turn

PROMPT = [5, 17, 250, 3]
PAST_THE_CONTEXT = 40  # tokens after the prompt, with a context of 32: the window moves twice


def tokens(lm, prompt=PROMPT, max_new_tokens=PAST_THE_CONTEXT, **settings) -> list[int]:
    return [step.token_id for step in generate(lm, prompt, max_new_tokens=max_new_tokens, **settings)]


MODELS = [{"position": position, "tie_embeddings": tied} for position, tied in product(["rope", "none"], [False, True])]
WAYS = [
    {"seed": 3},
    {"seed": 1},
    {"seed": 2, "temperature": 0.7, "top_k": 20},
    {"seed": 8, "top_p": 0.7, "repetition_penalty": 1.3},
    {"seed": 6, "temperature": 1.5, "min_p": 0.05},
    {"temperature": 0},
    {"temperature": 0, "repetition_penalty": 1.5},
]


@pytest.mark.parametrize(("choices", "settings"), in_turn(MODELS, WAYS), ids=str)
def test_decoder_cache_and_scratch_draw_the_same_tokens(make_lm, choices, settings):
    lm = make_lm(**choices)
    by_decoder = tokens(lm, **settings)
    from_scratch = tokens(lm, use_cache=False, **settings)
    lm.blocks[1].ffn.gate.register_forward_hook(lambda module, inputs, output: None)  # somebody looks
    by_cache = tokens(lm, **settings)
    assert by_decoder == by_cache == from_scratch
    assert len(by_decoder) == PAST_THE_CONTEXT


@pytest.mark.parametrize("num_tokens", [1, 31, 32, 33, 70])
def test_prompts_of_any_length_are_continued(make_lm, num_tokens):
    lm = make_lm()
    prompt = torch.randint(lm.config.vocab_size, (num_tokens,)).tolist()
    assert tokens(lm, prompt, seed=0) == tokens(lm, prompt, seed=0, use_cache=False)


def test_single_tokens_do_not_run_the_model(make_lm, monkeypatch):
    """Otherwise the decoder would be dead code, and the tests above would compare the model with itself."""
    lm = make_lm()
    forward, lengths = lm.forward, []
    monkeypatch.setattr(
        lm, "forward", lambda ids, *rest, **options: lengths.append(ids.shape[1]) or forward(ids, *rest, **options)
    )
    tokens(lm, max_new_tokens=20)
    assert lengths == [len(PROMPT)]


@pytest.mark.parametrize("tie_embeddings", [False, True], ids=["untied", "tied"])
def test_temperature_zero_is_the_greedy_search_of_transformers(make_lm, tie_embeddings):
    pytest.importorskip("transformers")
    from tests.hugging_face import as_llama

    lm = make_lm(tie_embeddings=tie_embeddings)
    hf_ids = as_llama(lm).generate(torch.tensor([PROMPT]), do_sample=False, max_new_tokens=28, pad_token_id=0)
    assert tokens(lm, max_new_tokens=28, temperature=0) == hf_ids[0, len(PROMPT) :].tolist()


@pytest.mark.parametrize("repetition_penalty", [1.2, 3.0])
def test_the_repetition_penalty_is_that_of_transformers(make_lm, repetition_penalty):
    """The penalty counts prompt and continuation, and each token once."""
    pytest.importorskip("transformers")
    from tests.hugging_face import as_llama

    lm, prompt = make_lm(), torch.tensor([PROMPT])
    settings = {"max_new_tokens": 28, "repetition_penalty": repetition_penalty}
    hf_ids = as_llama(lm).generate(prompt, do_sample=False, pad_token_id=0, **settings)
    assert tokens(lm, temperature=0, **settings) == hf_ids[0, len(PROMPT) :].tolist()
    assert tokens(lm, temperature=0, **settings) != tokens(lm, temperature=0, max_new_tokens=28)


SETTINGS = [{"top_k": 30}, {"top_p": 0.8, "min_p": 0.01, "repetition_penalty": 1.4}]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@torch.no_grad()
def test_each_step_says_what_drew_it(make_lm, settings):
    """Recompute each step by definition: the distribution from the tokens in the window, the draw from u."""
    lm = make_lm()
    ids = list(PROMPT)
    for step in generate(lm, PROMPT, max_new_tokens=50, temperature=0.9, seed=7, **settings):
        window = ids[window_start(len(ids), lm.config.context_length) :]
        logits = lm(torch.tensor([window]))[0, -1].numpy()
        probabilities = sampling_distribution(logits, 0.9, previous=window, **settings)
        assert step.u == uniform_draw(7, position=len(ids))
        assert step.token_id == draw_token(probabilities, step.u)
        assert step.probability == pytest.approx(probabilities[step.token_id], abs=1e-4)
        ids.append(step.token_id)


def test_a_seed_decides_the_tokens_and_no_seed_takes_fresh_ones(make_lm):
    lm = make_lm()
    assert tokens(lm, seed=3) == tokens(lm, seed=3)
    assert tokens(lm, seed=3) != tokens(lm, seed=4)
    assert tokens(lm) != tokens(lm)


@pytest.mark.parametrize("use_cache", [True, False])
def test_writing_on_step_by_step_draws_what_one_go_draws(make_lm, use_cache):
    lm, ids = make_lm(), list(PROMPT)
    for _ in range(40):
        ids += tokens(lm, ids, max_new_tokens=1, seed=5, use_cache=use_cache)
    assert ids[len(PROMPT) :] == tokens(lm, max_new_tokens=40, seed=5)


def test_tokens_that_were_dropped_before_the_prompt_count_as_positions(make_lm):
    steps = list(generate(make_lm(), [3, 4, 5], max_new_tokens=2, seed=7, num_dropped=20))
    assert [step.u for step in steps] == [uniform_draw(7, 23), uniform_draw(7, 24)]


def test_the_window_starts_at_zero_and_moves_by_a_quarter_of_the_context():
    assert [window_start(n, 8) for n in range(14)] == [0] * 9 + [2, 2, 4, 4, 6]
    assert [window_start(n, 1) for n in range(1, 4)] == [0, 1, 2]


@pytest.mark.parametrize("context_length", [1, 2, 3, 32, 257])
def test_the_window_always_fits_and_is_never_empty(context_length):
    lengths = [n - window_start(n, context_length) for n in range(1, 4 * context_length)]
    assert max(lengths) == context_length
    assert min(lengths) > 0


def test_a_model_of_context_one_generates(make_lm):
    assert len(tokens(make_lm(context_length=1), max_new_tokens=5)) == 5


def test_generation_ends_with_a_stop_token(make_lm):
    lm = make_lm()
    unstopped = tokens(lm, seed=0)
    stop = unstopped[10]
    assert tokens(lm, seed=0, stop_tokens={stop}) == unstopped[: unstopped.index(stop) + 1]


def test_generation_ends_with_the_token_that_completes_a_stop_string(make_lm, tiny_tokenizer):
    lm = make_lm()
    unstopped = list(generate(lm, PROMPT, max_new_tokens=40, seed=0))
    text = tiny_tokenizer.decode([step.token_id for step in unstopped])
    stop = next(text[i : i + 3] for i in range(20, 40) if text[i : i + 3].isascii())
    steps = list(generate(lm, PROMPT, max_new_tokens=40, seed=0, stop_strings=stop, tokenizer=tiny_tokenizer))
    assert [step.token_id for step in steps] == [step.token_id for step in unstopped[: len(steps)]]
    assert [step.stopped_by for step in steps] == [None] * (len(steps) - 1) + [stop]
    assert stop in tiny_tokenizer.decode([step.token_id for step in steps])
    assert stop not in tiny_tokenizer.decode([step.token_id for step in steps[:-1]])


def test_the_text_of_a_stop_token_is_no_stop_string(make_lm, tiny_tokenizer):
    lm = make_lm()
    (first,) = tokens(lm, seed=0, max_new_tokens=1)
    ends = {"stop_tokens": {first}, "stop_strings": tiny_tokenizer.token_text(first), "tokenizer": tiny_tokenizer}
    (step,) = generate(lm, PROMPT, max_new_tokens=9, seed=0, **ends)
    assert step.stopped_by is None


def test_no_tokens_are_generated_when_none_are_asked_for(make_lm):
    assert tokens(make_lm(), max_new_tokens=0) == []


@pytest.mark.parametrize(
    ("prompt", "settings", "message"),
    [
        ([], {}, "a prompt of at least one token, got none"),
        (PROMPT, {"max_new_tokens": -1}, "max_new_tokens must be 0 or more, got -1"),
        (PROMPT, {"temperature": -1}, "temperature must be 0 or more, got -1"),
        (PROMPT, {"top_k": -5}, "top_k must be 0"),
        (PROMPT, {"top_p": 2}, "top_p must be 0 to 1, got 2"),
        (PROMPT, {"min_p": -1}, "min_p must be 0 to 1, got -1"),
        (PROMPT, {"repetition_penalty": 0}, "repetition_penalty must be positive"),
        (PROMPT, {"stop_strings": "."}, "pass the model's tokenizer"),
    ],
)
def test_what_cannot_be_done_is_refused(make_lm, prompt, settings, message):
    with pytest.raises(ValueError, match=message):
        tokens(make_lm(), prompt, **settings)


def test_a_head_ablated_by_a_hook_stays_silent_at_every_step(make_lm, hooked):
    def ablate(module, inputs, z):
        return z.index_fill(1, torch.tensor(2), 0)

    lm, without_head = make_lm(), make_lm()
    without_head.blocks[0].attn.o_proj.weight.data[:, 16:] = 0  # head 2 of 3, each 8 wide
    with hooked(lm, {"blocks.0.attn.z": ablate}):
        ablated = tokens(lm, seed=0)
    assert ablated == tokens(without_head, seed=0)
    assert ablated != tokens(lm, seed=0)


@pytest.mark.parametrize("is_watched", [False, True])
def test_of_a_prompt_only_the_last_logits_are_worked_out_unless_somebody_looks(
    make_lm, hooked, monkeypatch, is_watched
):
    lm, counts = make_lm(), []
    unembed = lm.lm_head.forward
    monkeypatch.setattr(lm.lm_head, "forward", lambda x: counts.append(x.shape[1]) or unembed(x))
    with hooked(lm, {"logits": lambda module, inputs, output: None} if is_watched else {}):
        tokens(lm, max_new_tokens=1)
    assert counts == [len(PROMPT) if is_watched else 1]


@pytest.mark.parametrize("kind", ["register_forward_hook", "register_forward_pre_hook"])
def test_hooks_that_come_and_go_between_steps_see_just_those_steps(make_lm, kind):
    lm = make_lm()
    expected = tokens(lm, max_new_tokens=12, seed=0)
    steps = generate(lm, PROMPT, max_new_tokens=12, seed=0)
    generated, calls = [next(steps).token_id for _ in range(4)], []
    handle = getattr(lm.blocks[0].attn.q, kind)(lambda module, inputs, *output: calls.append(inputs[0].shape[2]))
    generated += [next(steps).token_id for _ in range(5)]
    handle.remove()
    generated += [step.token_id for step in steps]
    assert calls == [1] * 5
    assert generated == expected


def test_dropout_acts_while_the_model_is_in_training(make_lm):
    lm = make_lm(dropout=0.5)
    assert tokens(lm, prompt=[5], seed=0) == tokens(lm, prompt=[5], seed=0)
    lm.train()
    assert tokens(lm, prompt=[5], seed=0) != tokens(lm, prompt=[5], seed=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_generate(make_lm, dtype):
    lm = make_lm().to(dtype)
    assert len(tokens(lm, max_new_tokens=40)) == 40


def test_changed_weights_count_from_the_next_generation_on(make_lm):
    lm = make_lm()
    before = tokens(lm, seed=0)
    for parameter in lm.parameters():
        parameter.data *= 1.5
    after = tokens(lm, seed=0)
    assert after == tokens(lm, seed=0, use_cache=False)
    assert after != before


def test_generations_side_by_side_do_not_disturb_one_another(make_lm):
    lm = make_lm()
    separate = [tokens(lm, seed=seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda seed: tokens(lm, seed=seed), range(8)))
    assert together == separate


def test_interleaved_generations_do_not_disturb_one_another(make_lm):
    lm = make_lm()
    pairs = zip(*(generate(lm, PROMPT, max_new_tokens=40, seed=seed) for seed in (0, 1)), strict=True)
    first, second = zip(*((a.token_id, b.token_id) for a, b in pairs), strict=True)
    assert list(first) == tokens(lm, max_new_tokens=40, seed=0)
    assert list(second) == tokens(lm, max_new_tokens=40, seed=1)
