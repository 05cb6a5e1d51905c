"""Tokens per second of `generate` and of Hugging Face's, same weights: `python -m tests.benchmarks.generation`.

Each samples 64 tokens after a prompt of 16, by the same settings. The matrix products alone, one row times every weight
matrix, are what no implementation can do without. Then what a token costs at the beginning and at the end of the
context.
"""

import argparse
import statistics
import time

import torch

from model import TransformerLM, generate
from tests.benchmarks.models import bundled_model, gpt2_small, random_prompt, reference_model
from tests.benchmarks.timing import alternate
from tests.hugging_face import as_gpt2, as_llama

PROMPT_TOKENS, NEW_TOKENS = 16, 64
SETTINGS = {"temperature": 0.8, "top_k": 40}
MODELS = {"d256": reference_model, "bundled": bundled_model, "gpt2": gpt2_small}
AVERAGED_TOKENS = 32  # tokens whose costs are averaged


def make_contestants(lm: TransformerLM) -> dict:
    is_gpt2 = lm.config.position == "learned"
    hf_model, ids = (as_gpt2 if is_gpt2 else as_llama)(lm).to(lm.device), random_prompt(lm, PROMPT_TOKENS)
    tied = lm.config.tie_embeddings
    matrices = [w for name, w in lm.state_dict().items() if w.dim() == 2 and (tied or name != "token_embedding.weight")]
    if tied:
        matrices.pop(0)  # the table is listed under two names
    rows = {size: torch.randn(size, device=lm.device) for size in (lm.config.d_model, lm.config.d_ff)}

    def sample():
        assert len(list(generate(lm, ids[0].tolist(), max_new_tokens=NEW_TOKENS, **SETTINGS))) == NEW_TOKENS

    def sample_and_keep_every_value():
        outputs = []
        hooks = [tap.register_forward_hook(lambda *args: outputs.append(args[-1])) for tap in lm.taps.values()]
        sample()
        assert len(outputs) == len(hooks) * NEW_TOKENS
        for hook in hooks:
            hook.remove()

    def sample_hugging_face():
        mask = torch.ones_like(ids)
        options = {"do_sample": True, "use_cache": True, "pad_token_id": 0, "attention_mask": mask, **SETTINGS}
        # A large model is compared with the faster of its caches.
        options |= {"cache_implementation": "static", "disable_compile": True} if is_gpt2 else {}
        assert hf_model.generate(ids, max_new_tokens=NEW_TOKENS, **options).shape[1] == PROMPT_TOKENS + NEW_TOKENS

    @torch.inference_mode()
    def matrix_products():
        for _ in range(NEW_TOKENS):
            for matrix in matrices:
                torch.mv(matrix, rows[matrix.shape[1]])

    return {
        "Hugging Face": sample_hugging_face,
        "generate": sample,
        "generate, every value kept by hooks": sample_and_keep_every_value,
        "matrix products alone": matrix_products,
    }


def token_costs(lm: TransformerLM, rounds: int) -> list[float]:
    """Return median seconds per token, over `AVERAGED_TOKENS` after the prompt and at the end of the context.

    The first two steps are excluded: they process the prompt and prepare the decoder.
    """
    ids = random_prompt(lm, PROMPT_TOKENS)[0].tolist()
    seconds = []
    for _ in range(rounds):
        times = [time.perf_counter()]
        for _ in generate(lm, ids, max_new_tokens=lm.config.context_length - PROMPT_TOKENS, **SETTINGS):
            times.append(time.perf_counter())
        steps = [after - before for before, after in zip(times, times[1:], strict=False)]
        seconds.append([statistics.median(steps[2 : 2 + AVERAGED_TOKENS]), statistics.median(steps[-AVERAGED_TOKENS:])])
    return [statistics.median(times) for times in zip(*seconds, strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--models", nargs="*", default=MODELS, choices=MODELS)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    rounds = options.rounds
    for name in options.models:
        lm = MODELS[name]().to(options.device)
        seconds = alternate(make_contestants(lm), rounds)
        print(f"{name}: tokens/s, x Hugging Face, part of the matrix products' speed")
        for contestant, took in seconds.items():
            times, matrix_share = seconds["Hugging Face"] / took, seconds["matrix products alone"] / took
            print(f"  {contestant:36s} {NEW_TOKENS / took:6.0f} {times:6.2f} {matrix_share:6.0%}")
        if name == "gpt2":  # filling its context takes minutes
            continue
        first, last = token_costs(lm, rounds)
        print(f"  first and last tokens of the context, ms: {1e3 * first:.2f}, {1e3 * last:.2f}, x {last / first:.2f}")


if __name__ == "__main__":
    main()
