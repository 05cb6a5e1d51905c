"""The two functions of the HTTP API, and the server's status."""

import platform
import resource
import sys
import time
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
import torch

from explorer import __version__
from explorer.analysis.next_token import next_token_distribution, surprisal
from explorer.state.generation_settings import NO_LIMITS, GenerationSettings, UserLimits
from explorer.tracing.jobs import check_budget
from explorer.tracing.model_library import ModelLibrary
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.key_value_stores import FaultTolerantStore
from model.generation.autoregressive import generate as generate_tokens
from model.generation.autoregressive import truncate_at_stop


class PublicApi:
    """Typed, documented and stateless functions behind `/explore` and `/generate`."""

    def __init__(self, state_builder: PageStateBuilder, default_checkpoint: str, limits: UserLimits = NO_LIMITS):
        self.state_builder = state_builder
        self.default_checkpoint, self.limits = default_checkpoint, limits

    def explore(self, prompt: str, checkpoint: str = "", request: gr.Request = None) -> dict[str, Any]:
        """Run a model once over a prompt and return its tokens, surprisals and predictions.

        Args:
            prompt: any text; of one longer than the context the last part is used, from three quarters to all of the
                context.
            checkpoint: name of a model, the default one if empty.

        Returns:
            `tokens` and `ids` (T each); `surprisal` (T), bits, null for the first token; `next_tokens`, the 10
            likeliest, each with `token`, `id` and `probability`; `captured`, name of every captured value -> its
            shape; `dropped`, number of tokens of a long prompt that were cut.
        """
        run = self.state_builder.create_run(checkpoint or self.default_checkpoint, prompt)
        trace = self.state_builder.runs.trace(run)
        prediction = next_token_distribution(trace, len(trace) - 1)
        return {
            "tokens": list(trace.tokens),
            "ids": list(trace.token_ids),
            "surprisal": [None if np.isnan(bits) else float(bits) for bits in surprisal(trace)],
            "next_tokens": [
                {"token": trace.vocabulary[i], "id": int(i), "probability": float(prediction.plain[i])}
                for i in prediction.top(10)
            ],
            "captured": {name: list(trace.shape(name)) for name in trace.values},
            "dropped": run.dropped,
        }

    def generate(
        self,
        prompt: str,
        max_new_tokens: int = 60,
        temperature: float = 0.8,
        top_k: int = 40,
        seed: int = 0,
        checkpoint: str = "",
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        stop: str = "",
        request: gr.Request = None,
    ) -> dict[str, Any]:
        """Continue a prompt; the same seed gives the same text.

        Args:
            prompt: any text that is not empty; of a long one the part is used that `explore` uses.
            max_new_tokens: 1 to 512; where the app was started with lower limits, of tokens or of seconds, fewer come.
            temperature: 0 to 2; 0 always takes the likeliest token.
            top_k: draw from this many likeliest tokens; 0 draws from all.
            seed: of the random numbers, 0 to 4294967295.
            checkpoint: name of a model, the default one if empty.
            top_p: 0 to 1; draw from the fewest likeliest tokens that have this probability together; 1 draws from all.
            min_p: 0 to 1; draw from tokens at least this many times as likely as the likeliest; 0 draws from all.
            repetition_penalty: 1 to 2; makes tokens that were there before less likely; 1 does not.
            stop: the text ends with this text of at most 64 characters, if it comes up; none if empty.

        Returns:
            `text`, the continuation; `tokens`, each with `token`, `id` and `probability` it was drawn with; the last of
            them may hold more than `text` where that ends with `stop`.
        """
        settings = GenerationSettings(
            temperature, top_k, max_new_tokens, seed, top_p, min_p, repetition_penalty, stop
        ).validate()
        run = self.state_builder.create_run(checkpoint or self.default_checkpoint, prompt)
        lm, tokenizer = self.state_builder.runs.model(run.checkpoint)
        eos_options = {"stop_tokens": tokenizer.eos_ids, "tokenizer": tokenizer}
        end, steps = time.monotonic() + self.limits.seconds, []
        for step in generate_tokens(lm, run.prompt, num_dropped=run.dropped, **eos_options, **settings.as_dict()):
            check_budget()
            steps.append(step)
            if len(steps) == self.limits.tokens or time.monotonic() >= end:
                break
        ids = [step.token_id for step in steps if step.token_id not in tokenizer.eos_ids]
        return {
            "text": truncate_at_stop(tokenizer.decode_continuation(ids, run.prompt), steps[-1].stopped_by),
            "tokens": [
                {"token": tokenizer.vocabulary[s.token_id], "id": s.token_id, "probability": s.probability}
                for s in steps
            ],
        }


def health(
    library: ModelLibrary, blocks: gr.Blocks, num_waiting: int = 0, shared: FaultTolerantStore | None = None
) -> dict[str, Any]:
    """Return the server's current status.

    Returns:
        `version`, its own and of its libraries; `models`, names of those in memory; `traces_bytes`, of cached
            activations; `sessions` that Gradio stores; `rss_bytes`, resident memory; `queue`, number of waiting
            requests; `shared`, location of the shared store and whether it is available, "" for none.
    """
    memory = library.memory()
    location = shared.location if shared else ""
    holder = getattr(blocks.app, "state_holder", None)
    python = platform.python_version()
    return {
        "version": f"{__version__}, gradio {gr.__version__}, torch {torch.__version__}, python {python}",
        "models": sorted(memory["models"]),
        "traces_bytes": memory["traces_bytes"] + memory["looked_at_bytes"],
        "sessions": len(holder.session_data) if holder else 0,
        "rss_bytes": resident_bytes(),
        "queue": len(blocks._queue) + num_waiting,
        "shared": location if not shared or shared.is_available else f"{location}, which does not answer",
    }


def resident_bytes() -> int:
    """Return the process's resident memory in bytes, or its peak where the system reports only that."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak << 10
