"""Time of `capture` relative to a forward pass without hooks: `python -m tests.benchmarks.capture`."""

import argparse

import torch

from explorer.tracing.capture import capture, trace_num_bytes
from explorer.tracing.model_library import MAX_TRACE_BYTES
from model.transformer_lm import TransformerLM
from tests.benchmarks.models import bundled_model, gpt2_small, random_prompt, reference_model
from tests.benchmarks.timing import alternate

FEW_ROUNDS = 5  # rounds of measurements that take seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    rounds, device = options.rounds, options.device
    for name, lm in (("d_model 256", reference_model().to(device)), ("bundled", bundled_model().to(device))):
        for num_tokens in (64, 256):
            print(f"{name}, {num_tokens} tokens: {compare_times(lm, num_tokens, rounds)}")
    lm = gpt2_small().to(device)
    for num_tokens in (64, 1024):
        trace = capture(lm, random_prompt(lm, num_tokens)[0].tolist(), max_bytes=MAX_TRACE_BYTES)
        captured_mb, all_values_mb = trace.num_bytes / 1e6, trace_num_bytes(lm.config, num_tokens) / 1e6
        print(f"GPT-2 small's size, {num_tokens} tokens: {compare_times(lm, num_tokens, FEW_ROUNDS)}")
        print(f"  kept {captured_mb:,.0f} MB; every value would take {all_values_mb:,.0f} MB")


def compare_times(lm: TransformerLM, num_tokens: int, rounds: int) -> str:
    """Return both times and their ratio as text."""
    ids = random_prompt(lm, num_tokens)
    seconds = alternate(
        {
            "forward": torch.inference_mode()(lambda: lm(ids)),
            "capture": lambda: capture(lm, ids[0].tolist(), max_bytes=MAX_TRACE_BYTES),
        },
        rounds,
    )
    ratio = seconds["capture"] / seconds["forward"]
    return ", ".join(f"{name} {1e3 * took:.2f} ms" for name, took in seconds.items()) + f"; {ratio:.2f}"


if __name__ == "__main__":
    main()
