"""Time of `capture` beside that of a forward pass without hooks: `python -m tests.benchmarks.capture`."""

import argparse

import torch

from explorer.tracing.capture import capture
from tests.benchmarks.models import prompt, reference
from tests.benchmarks.timing import alternate


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    lm = reference()
    for num_tokens in (64, 256):
        ids = prompt(lm, num_tokens)
        forward = torch.inference_mode()(lambda ids=ids: lm(ids))
        seconds = alternate({"forward": forward, "capture": lambda ids=ids: capture(lm, ids[0].tolist())}, rounds)
        ratio = seconds["capture"] / seconds["forward"]
        print(f"{num_tokens} tokens, ms: " + ", ".join(f"{name} {1e3 * took:.2f}" for name, took in seconds.items()))
        print(f"  capture / forward: {ratio:.2f}")


if __name__ == "__main__":
    main()
