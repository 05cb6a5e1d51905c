"""Time of all activation patching maps and of their estimates: `python -m tests.benchmarks.patching`."""

import statistics
import time

from explorer import activation_patching, attribution_patching
from explorer.lessons.example_prompts import PROMPT_PAIRS
from explorer.tracing.patching.patching_setup import COMPONENTS
from model import load_checkpoint

ROUNDS = 5


def main():
    lm, tokenizer = load_checkpoint("llama-fables")
    pair = PROMPT_PAIRS[0]
    clean, corrupted = (tokenizer.encode(text) for text in (pair.clean, pair.corrupted))
    answer, wrong = (tokenizer.vocabulary.index(text) for text in (pair.answer, pair.wrong))
    seconds = {"exact": [], "estimated": []}
    for _ in range(ROUNDS):
        for name, patch in (("exact", activation_patching), ("estimated", attribution_patching)):
            began = time.perf_counter()
            for component in COMPONENTS:
                for direction in ("denoise", "noise"):
                    patch(lm, clean, corrupted, answer, wrong, part=component, direction=direction)
            seconds[name].append(time.perf_counter() - began)
    exact, estimated = (statistics.median(times) for times in seconds.values())
    print(
        f"{2 * len(COMPONENTS)} maps at {len(clean)} tokens: exact "
        f"{exact:.2f} s, {exact / estimated:.1f} × the estimates"
    )


if __name__ == "__main__":
    main()
