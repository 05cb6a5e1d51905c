"""Time of `capture`, relative to TransformerLens' `run_with_cache`: `python -m tests.benchmarks.transformer_lens`.

Same weights, 64 tokens, every value that each of the two names. TransformerLens is no dependency of the project:
install it (4.3) into an environment of its own that has torch 2.13 and what `tests/requirements.txt` lists.
"""

import argparse
import tempfile

import torch
from tokenizers import Tokenizer, models
from transformer_lens.model_bridge import TransformerBridge
from transformers import PreTrainedTokenizerFast

from explorer.tracing.capture import capture
from model import TransformerLM
from tests.benchmarks.models import random_prompt, reference_model
from tests.benchmarks.timing import alternate
from tests.hugging_face import as_llama


def make_bridge(lm: TransformerLM) -> TransformerBridge:
    """Return a TransformerLens bridge that computes the same function as `lm`.

    TransformerLens requires a tokenizer; the measurement never uses it.
    """
    word_tokenizer = Tokenizer(models.WordLevel({"<end>": 0}, unk_token="<end>"))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=word_tokenizer, bos_token="<end>", eos_token="<end>", pad_token="<end>"
    )
    llama = as_llama(lm, attn_implementation="eager")
    with tempfile.TemporaryDirectory() as folder:
        llama.config.architectures = ["LlamaForCausalLM"]
        llama.config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return TransformerBridge.boot_transformers(folder, hf_model=llama, device="cpu")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    lm = reference_model()
    bridge, ids = make_bridge(lm), random_prompt(lm, 64)

    @torch.inference_mode()
    def run_with_cache():
        return bridge.run_with_cache(ids)

    def run_capture():
        return capture(lm, ids[0].tolist())

    logits, cache = run_with_cache()
    trace = run_capture()
    torch.testing.assert_close(logits[0], torch.tensor(trace["logits"]), atol=1e-4, rtol=1e-4)
    print(f"values captured: TransformerLens {len(cache)}, capture {len(trace.values)}")
    seconds = alternate({"run_with_cache": run_with_cache, "capture": run_capture}, rounds)
    print("64 tokens, ms: " + ", ".join(f"{name} {1e3 * took:.2f}" for name, took in seconds.items()))
    print(f"  capture / run_with_cache: {seconds['capture'] / seconds['run_with_cache']:.2f}")


if __name__ == "__main__":
    main()
