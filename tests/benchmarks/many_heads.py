"""Analyses of all heads, with 32 layers of 32 heads and 1,024 tokens: `python -m tests.benchmarks.many_heads`.

Narrow layers with random weights, so that attention takes nearly all of the time; in seconds, next to a pass of the
model with fused kernels, and one that forms every pattern, as figures of all heads must.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from explorer.analysis.token_contributions import attention_rollout
from explorer.state.selection import Selection
from explorer.tracing.capture import capture
from explorer.tracing.forward_hooks import forward_hooks
from explorer.views import VIEW_BY_NAME
from explorer.web.browser_api.page_contents import figure_payload
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

PANELS = ("heads", "pattern", "scores")  # of the Attention tab: all heads, one whole pattern, head scores
MAX_TRACE_BYTES = 20 << 20  # too few to cache any pattern


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("layers", 32), ("heads", 32), ("tokens", 1024)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(0)
    sizes = {"vocab_size": 2000, "d_model": 2 * options.heads, "d_ff": 4 * options.heads}
    shape = {"num_layers": options.layers, "num_heads": options.heads, "context_length": options.tokens}
    lm = TransformerLM(ModelConfig(**sizes, **shape)).eval().requires_grad_(False)
    ids = np.random.default_rng(0).integers(sizes["vocab_size"], size=options.tokens).tolist()
    trace = capture(lm, ids, max_bytes=MAX_TRACE_BYTES)
    selection = Selection(query=options.tokens - 1).clamp_to_trace(trace)
    patterns = [lm.taps[f"blocks.{layer}.attn.pattern"] for layer in range(options.layers)]

    def run_forward():
        with torch.inference_mode():
            lm(torch.tensor([ids]))

    def form_patterns():
        with forward_hooks(patterns, lambda module, inputs, output: None):
            run_forward()

    run_forward(), form_patterns()
    print_time("a pass with fused kernels", run_forward)
    print_time("a pass that forms every pattern", form_patterns)
    print_time("attention rollout", lambda: attention_rollout(trace, options.tokens - 1))
    for panel in VIEW_BY_NAME["attention"].panels:
        if panel.name not in PANELS:
            continue
        print_time(panel.name, lambda panel=panel: figure_payload(panel.draw(trace, selection)))


def print_time(name: str, work: Callable[[], Any]):
    began = time.perf_counter()
    result = work()
    took = time.perf_counter() - began
    size = "" if result is None or isinstance(result, np.ndarray) else f", {len(json.dumps(result)) / 1e6:.2f} MB"
    print(f"{name:32s} {took:6.1f} s{size}", flush=True)


if __name__ == "__main__":
    main()
