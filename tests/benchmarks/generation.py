"""Tokens a second of `generate` and of Hugging Face's, same weights: `python -m tests.benchmarks.generation`.

Each samples 64 tokens after a prompt of 16. The matrix products alone, one row times every weight matrix, are what
no implementation can do without.
"""

import argparse

import torch

from model import TransformerLM, generate
from tests.benchmarks.models import bundled, prompt, reference
from tests.benchmarks.timing import alternate
from tests.hugging_face import as_llama

PROMPT_TOKENS, NEW_TOKENS = 16, 64


def contestants(lm: TransformerLM) -> dict:
    llama, ids = as_llama(lm), prompt(lm, PROMPT_TOKENS)
    tied = lm.config.tie_embeddings
    matrices = [w for name, w in lm.state_dict().items() if w.dim() == 2 and (tied or name != "token_embedding.weight")]
    if tied:
        matrices.pop(0)  # the table is listed under both of its names
    rows = {size: torch.randn(size) for size in (lm.config.d_model, lm.config.d_ff)}

    def sample():
        assert len(list(generate(lm, ids[0].tolist(), max_new_tokens=NEW_TOKENS))) == NEW_TOKENS

    def sample_with_a_hook():
        handle = lm.embed.register_forward_hook(lambda module, inputs, output: None)
        sample()
        handle.remove()

    def sample_hugging_face():
        mask = torch.ones_like(ids)
        options = {"do_sample": True, "use_cache": True, "pad_token_id": 0, "attention_mask": mask}
        assert llama.generate(ids, max_new_tokens=NEW_TOKENS, **options).shape[1] == PROMPT_TOKENS + NEW_TOKENS

    @torch.inference_mode()
    def matrix_products():
        for _ in range(NEW_TOKENS):
            for matrix in matrices:
                torch.mv(matrix, rows[matrix.shape[1]])

    return {
        "Hugging Face": sample_hugging_face,
        "generate": sample,
        "generate, with a hook on the model": sample_with_a_hook,
        "matrix products alone": matrix_products,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    for name, lm in {"d_model 256": reference(), "bundled": bundled()}.items():
        seconds = alternate(contestants(lm), rounds)
        print(f"{name}: tokens/s, x Hugging Face, part of the matrix products' speed")
        for contestant, took in seconds.items():
            times, part = seconds["Hugging Face"] / took, seconds["matrix products alone"] / took
            print(f"  {contestant:36s} {NEW_TOKENS / took:6.0f} {times:6.2f} {part:6.0%}")


if __name__ == "__main__":
    main()
