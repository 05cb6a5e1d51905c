from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
import torch

from model.config import window_start
from model.generation.autoregressive import generate, uniform_draw
from model.generation.sampling import draw_token, sampling_distribution
from tests.exhaustive import pairwise_params
from tests.subtest_loops import subtest_each

PROMPT = [5, 17, 250, 3]
MAX_NEW_TOKENS = 40  # tokens after the prompt, with a context of 32: the window moves twice


def generate_ids(lm, prompt=PROMPT, max_new_tokens=MAX_NEW_TOKENS, **settings) -> list[int]:
    return [step.token_id for step in generate(lm, prompt, max_new_tokens=max_new_tokens, **settings)]


MODELS = [{"position": position, "tie_embeddings": tied} for position, tied in product(["rope", "none"], [False, True])]
GENERATION_SETTINGS = [
    {"seed": 3},
    {"seed": 1},
    {"seed": 2, "temperature": 0.7, "top_k": 20},
    {"seed": 8, "top_p": 0.7, "repetition_penalty": 1.3},
    {"seed": 6, "temperature": 1.5, "min_p": 0.05},
    {"temperature": 0},
    {"temperature": 0, "repetition_penalty": 1.5},
]


@subtest_each(("choices", "settings"), pairwise_params(MODELS, GENERATION_SETTINGS), ids=str)
def test_decoder_cached_and_uncached_generation_agree(make_lm, choices, settings):
    lm = make_lm(**choices)
    by_decoder = generate_ids(lm, **settings)
    from_scratch = generate_ids(lm, use_cache=False, **settings)
    lm.blocks[1].ffn.gate.register_forward_hook(lambda module, inputs, output: None)  # disables the decoder
    by_cache = generate_ids(lm, **settings)
    assert by_decoder == by_cache == from_scratch
    assert len(by_decoder) == MAX_NEW_TOKENS


@pytest.mark.parametrize("num_tokens", [1, 31, 32, 33, 70])
def test_prompts_of_any_length_are_continued(make_lm, num_tokens):
    lm = make_lm()
    prompt = torch.randint(lm.config.vocab_size, (num_tokens,)).tolist()
    assert generate_ids(lm, prompt, seed=0) == generate_ids(lm, prompt, seed=0, use_cache=False)


def test_single_tokens_do_not_run_whole_model(make_lm, monkeypatch):
    """Otherwise the decoder would be dead code, and the tests above would compare the model with itself."""
    lm = make_lm()
    forward, lengths = lm.forward, []
    monkeypatch.setattr(
        lm, "forward", lambda ids, *rest, **options: lengths.append(ids.shape[1]) or forward(ids, *rest, **options)
    )
    generate_ids(lm, max_new_tokens=20)
    assert lengths == [len(PROMPT)]


@pytest.mark.parametrize("tie_embeddings", [False, True], ids=["untied", "tied"])
def test_temperature_0_matches_transformers_greedy_search(make_lm, tie_embeddings):
    pytest.importorskip("transformers")
    from tests.hugging_face import as_llama

    lm = make_lm(tie_embeddings=tie_embeddings)
    hf_ids = as_llama(lm).generate(torch.tensor([PROMPT]), do_sample=False, max_new_tokens=28, pad_token_id=0)
    assert generate_ids(lm, max_new_tokens=28, temperature=0) == hf_ids[0, len(PROMPT) :].tolist()


@pytest.mark.parametrize("repetition_penalty", [1.2, 3.0])
def test_repetition_penalty_matches_transformers(make_lm, repetition_penalty):
    """The penalty counts prompt and continuation, and each token once."""
    pytest.importorskip("transformers")
    from tests.hugging_face import as_llama

    lm, prompt = make_lm(), torch.tensor([PROMPT])
    settings = {"max_new_tokens": 28, "repetition_penalty": repetition_penalty}
    hf_ids = as_llama(lm).generate(prompt, do_sample=False, pad_token_id=0, **settings)
    assert generate_ids(lm, temperature=0, **settings) == hf_ids[0, len(PROMPT) :].tolist()
    assert generate_ids(lm, temperature=0, **settings) != generate_ids(lm, temperature=0, max_new_tokens=28)


SETTINGS = [{"top_k": 30}, {"top_p": 0.8, "min_p": 0.01, "repetition_penalty": 1.4}]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@torch.no_grad()
def test_step_reports_its_draw_and_probability(make_lm, settings):
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


def test_seed_determines_tokens(make_lm):
    lm = make_lm()
    assert generate_ids(lm, seed=3) == generate_ids(lm, seed=3)
    assert generate_ids(lm, seed=3) != generate_ids(lm, seed=4)
    assert generate_ids(lm) != generate_ids(lm)


@pytest.mark.parametrize("use_cache", [True, False])
def test_stepwise_and_joint_generation_agree(make_lm, use_cache):
    lm, ids = make_lm(), list(PROMPT)
    for _ in range(40):
        ids += generate_ids(lm, ids, max_new_tokens=1, seed=5, use_cache=use_cache)
    assert ids[len(PROMPT) :] == generate_ids(lm, max_new_tokens=40, seed=5)


def test_dropped_tokens_count_as_positions(make_lm):
    steps = list(generate(make_lm(), [3, 4, 5], max_new_tokens=2, seed=7, num_dropped=20))
    assert [step.u for step in steps] == [uniform_draw(7, 23), uniform_draw(7, 24)]


def test_window_moves_by_quarter_of_context():
    assert [window_start(n, 8) for n in range(14)] == [0] * 9 + [2, 2, 4, 4, 6]
    assert [window_start(n, 1) for n in range(1, 4)] == [0, 1, 2]


@pytest.mark.parametrize("context_length", [1, 2, 3, 32, 257])
def test_window_fits_and_is_never_empty(context_length):
    lengths = [n - window_start(n, context_length) for n in range(1, 4 * context_length)]
    assert max(lengths) == context_length
    assert min(lengths) > 0


def test_context_of_1_generates(make_lm):
    assert len(generate_ids(make_lm(context_length=1), max_new_tokens=5)) == 5


def test_stop_token_ends_generation(make_lm):
    lm = make_lm()
    unstopped = generate_ids(lm, seed=0)
    stop = unstopped[10]
    assert generate_ids(lm, seed=0, stop_tokens={stop}) == unstopped[: unstopped.index(stop) + 1]


def test_stop_string_ends_generation_at_completing_token(make_lm, tiny_tokenizer):
    lm = make_lm()
    unstopped = list(generate(lm, PROMPT, max_new_tokens=40, seed=0))
    text = tiny_tokenizer.decode([step.token_id for step in unstopped])
    stop = next(text[i : i + 3] for i in range(20, 40) if text[i : i + 3].isascii())
    steps = list(generate(lm, PROMPT, max_new_tokens=40, seed=0, stop_strings=stop, tokenizer=tiny_tokenizer))
    assert [step.token_id for step in steps] == [step.token_id for step in unstopped[: len(steps)]]
    assert [step.stopped_by for step in steps] == [None] * (len(steps) - 1) + [stop]
    assert stop in tiny_tokenizer.decode([step.token_id for step in steps])
    assert stop not in tiny_tokenizer.decode([step.token_id for step in steps[:-1]])


def test_stop_token_text_is_not_stop_string(make_lm, tiny_tokenizer):
    lm = make_lm()
    (first,) = generate_ids(lm, seed=0, max_new_tokens=1)
    ends = {"stop_tokens": {first}, "stop_strings": tiny_tokenizer.token_text(first), "tokenizer": tiny_tokenizer}
    (step,) = generate(lm, PROMPT, max_new_tokens=9, seed=0, **ends)
    assert step.stopped_by is None


def test_max_new_tokens_0_generates_nothing(make_lm):
    assert generate_ids(make_lm(), max_new_tokens=0) == []


@subtest_each(
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
def test_invalid_arguments_are_refused(make_lm, prompt, settings, message):
    with pytest.raises(ValueError, match=message):
        generate_ids(make_lm(), prompt, **settings)


def test_ablation_hook_acts_at_every_step(make_lm, hook_modules):
    def ablate(module, inputs, z):
        return z.index_fill(1, torch.tensor(2), 0)

    lm, without_head = make_lm(), make_lm()
    without_head.blocks[0].attn.o_proj.weight.data[:, 16:] = 0  # head 2 of 3, each 8 wide
    with hook_modules(lm, {"blocks.0.attn.z": ablate}):
        ablated = generate_ids(lm, seed=0)
    assert ablated == generate_ids(without_head, seed=0)
    assert ablated != generate_ids(lm, seed=0)


@pytest.mark.parametrize("is_watched", [False, True])
def test_prompt_computes_only_last_logits_without_hooks(make_lm, hook_modules, monkeypatch, is_watched):
    lm, counts = make_lm(), []
    unembed = lm.lm_head.forward
    monkeypatch.setattr(lm.lm_head, "forward", lambda x: counts.append(x.shape[1]) or unembed(x))
    with hook_modules(lm, {"logits": lambda module, inputs, output: None} if is_watched else {}):
        generate_ids(lm, max_new_tokens=1)
    assert counts == [len(PROMPT) if is_watched else 1]


@pytest.mark.parametrize("kind", ["register_forward_hook", "register_forward_pre_hook"])
def test_hooks_added_between_steps_see_only_those_steps(make_lm, kind):
    lm = make_lm()
    expected = generate_ids(lm, max_new_tokens=12, seed=0)
    steps = generate(lm, PROMPT, max_new_tokens=12, seed=0)
    generated, calls = [next(steps).token_id for _ in range(4)], []
    handle = getattr(lm.blocks[0].attn.q, kind)(lambda module, inputs, *output: calls.append(inputs[0].shape[2]))
    generated += [next(steps).token_id for _ in range(5)]
    handle.remove()
    generated += [step.token_id for step in steps]
    assert calls == [1] * 5
    assert generated == expected


def test_dropout_acts_only_in_training_mode(make_lm):
    lm = make_lm(dropout=0.5)
    assert generate_ids(lm, prompt=[5], seed=0) == generate_ids(lm, prompt=[5], seed=0)
    lm.train()
    assert generate_ids(lm, prompt=[5], seed=0) != generate_ids(lm, prompt=[5], seed=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_generate(make_lm, dtype):
    lm = make_lm().to(dtype)
    assert len(generate_ids(lm, max_new_tokens=40)) == 40


def test_changed_weights_affect_next_generation(make_lm):
    lm = make_lm()
    before = generate_ids(lm, seed=0)
    for parameter in lm.parameters():
        parameter.data *= 1.5
    after = generate_ids(lm, seed=0)
    assert after == generate_ids(lm, seed=0, use_cache=False)
    assert after != before


def test_parallel_generations_are_independent(make_lm):
    lm = make_lm()
    separate = [generate_ids(lm, seed=seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda seed: generate_ids(lm, seed=seed), range(8)))
    assert together == separate


def test_interleaved_generations_are_independent(make_lm):
    lm = make_lm()
    pairs = zip(*(generate(lm, PROMPT, max_new_tokens=40, seed=seed) for seed in (0, 1)), strict=True)
    first, second = zip(*((a.token_id, b.token_id) for a, b in pairs), strict=True)
    assert list(first) == generate_ids(lm, max_new_tokens=40, seed=0)
    assert list(second) == generate_ids(lm, max_new_tokens=40, seed=1)
