"""What looks at all heads of a model of 32 layers of 32 heads at 1,024 tokens: `python -m tests.benchmarks.many_heads`.

Narrow layers with random weights, so that attention is nearly all that takes time; in seconds, beside a pass of the
model with fused kernels, and one that forms every pattern, as pictures of all heads have to.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from explorer.analysis.rollout import rollout
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.hooks import hooked
from explorer.views import VIEW_NAMED
from explorer.web.answers.view_contents import packed
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

PICTURES = ("heads", "pattern", "scores")  # of the Attention tab: a sheet of all heads, one whole, and what they do
MOST_BYTES = 20 << 20  # kept of the run: no pattern is among them


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, otherwise in (("layers", 32), ("heads", 32), ("tokens", 1024)):
        parser.add_argument(f"--{name}", type=int, default=otherwise)
    options = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(0)
    sizes = {"vocab_size": 2000, "d_model": 2 * options.heads, "d_ff": 4 * options.heads}
    shape = {"num_layers": options.layers, "num_heads": options.heads, "context_length": options.tokens}
    lm = TransformerLM(ModelConfig(**sizes, **shape)).eval().requires_grad_(False)
    ids = np.random.default_rng(0).integers(sizes["vocab_size"], size=options.tokens).tolist()
    trace = capture(lm, ids, most_bytes=MOST_BYTES)
    selection = Selection(query=options.tokens - 1).within(trace)
    patterns = [lm.taps[f"blocks.{layer}.attn.pattern"] for layer in range(options.layers)]

    def passes():
        with torch.inference_mode():
            lm(torch.tensor([ids]))

    def forms_patterns():
        with hooked(patterns, lambda module, inputs, output: None):
            passes()

    passes(), forms_patterns()
    timed("a pass with fused kernels", passes)
    timed("a pass that forms every pattern", forms_patterns)
    timed("attention rollout", lambda: rollout(trace, options.tokens - 1))
    for panel in VIEW_NAMED["attention"].panels:
        if panel.name not in PICTURES:
            continue
        timed(panel.name, lambda panel=panel: packed(panel.draw(trace, selection)))


def timed(name: str, work: Callable[[], Any]):
    began = time.perf_counter()
    found = work()
    took = time.perf_counter() - began
    size = "" if found is None or isinstance(found, np.ndarray) else f", {len(json.dumps(found)) / 1e6:.2f} MB"
    print(f"{name:32s} {took:6.1f} s{size}", flush=True)


if __name__ == "__main__":
    main()
