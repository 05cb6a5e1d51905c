"""Time of a training step, relative to plain PyTorch code: `python -m tests.benchmarks.training`.

Batches of 16 windows of 256 tokens, AdamW, gradient clipping; the twins as bundled, with dropout 0.1 and without.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

from model import ModelConfig, TransformerLM
from model.training.options import TrainingOptions
from tests.benchmarks.plain_models import PlainLM
from tests.benchmarks.timing import alternate


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--precision", choices=("float32", "bf16"), default="bf16")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    for style, extra in (("llama", {}), ("gpt", {"scale_embeddings": True})):
        for dropout in (0.0, 0.1):
            chosen = TrainingOptions(train="", out="", style=style, model=extra | {"dropout": dropout})
            config = chosen.model_config(vocab_size=4096)
            steps = {"ours": TransformerLM(config), "plain": PlainLM(config)}
            steps = {name: make_step(lm, config, options) for name, lm in steps.items()}
            seconds = alternate(steps, options.rounds)
            times = ", ".join(f"{name} {1e3 * took:.0f} ms" for name, took in seconds.items())
            print(f"{style}, dropout {dropout}: {times}; ours / plain {seconds['ours'] / seconds['plain']:.2f}")


def make_step(lm: nn.Module, config: ModelConfig, options):
    """Return a function that performs one training step, always on the same batch."""
    lm.train()
    optimizer = torch.optim.AdamW(lm.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(config.vocab_size, (16, config.context_length + 1), generator=torch.Generator().manual_seed(0))

    def compute_loss(inputs, targets):
        return F.cross_entropy(lm(inputs).flatten(0, 1), targets.flatten())

    if options.compile:
        compute_loss = torch.compile(compute_loss)

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "bf16"):
            loss = compute_loss(ids[:, :-1], ids[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


if __name__ == "__main__":
    main()
