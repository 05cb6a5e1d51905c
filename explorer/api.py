"""The two functions offered to programs."""

from typing import Any

import numpy as np

from explorer.analysis.next_token import next_token, surprisal
from explorer.library import Library
from explorer.presenter import Presenter
from explorer.settings import GenerationSettings
from model.generation import generate as generate_tokens


class Api:
    """Typed, documented and stateless: what `/explore` and `/generate` answer."""

    def __init__(self, library: Library, default_checkpoint: str):
        self.library, self.presenter = library, Presenter(library)
        self.default_checkpoint = default_checkpoint

    def explore(self, prompt: str, checkpoint: str = "") -> dict[str, Any]:
        """Run a model once over a prompt and say what it made of it.

        Args:
            prompt: any text; of one longer than the context the last part is used.
            checkpoint: name of a model, the default one if empty.

        Returns:
            `tokens` and `ids` (T each); `surprisal` (T), bits, null for the first token; `next_tokens`, the 10
            likeliest, each with `token`, `id` and `probability`; `captured`, name of every captured value -> its shape;
            `dropped`, how many tokens of a long prompt were left out.
        """
        run = self.presenter.run_of(checkpoint or self.default_checkpoint, prompt)
        trace = self.presenter.trace(run)
        prediction = next_token(trace, len(trace) - 1)
        return {
            "tokens": list(trace.tokens),
            "ids": list(trace.token_ids),
            "surprisal": [None if np.isnan(bits) else float(bits) for bits in surprisal(trace)],
            "next_tokens": [
                {"token": trace.vocabulary[i], "id": int(i), "probability": float(prediction.plain[i])}
                for i in prediction.top(10)
            ],
            "captured": {name: list(value.shape) for name, value in trace.values.items()},
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
    ) -> dict[str, Any]:
        """Continue a prompt; the same seed gives the same text.

        Args:
            prompt: any text that is not empty.
            max_new_tokens: 1 to 512.
            temperature: 0 to 2; 0 always takes the likeliest token.
            top_k: draw from this many likeliest tokens; 0 draws from all.
            seed: of the random numbers, 0 to 4294967295.
            checkpoint: name of a model, the default one if empty.

        Returns:
            `text`, the continuation; `tokens`, each with `token`, `id` and `probability` it was drawn with.
        """
        settings = GenerationSettings(temperature, top_k, max_new_tokens, seed).checked()
        run = self.presenter.run_of(checkpoint or self.default_checkpoint, prompt)
        lm, tokenizer = self.library.model(run.checkpoint)
        steps = list(generate_tokens(lm, run.prompt, stop_tokens={tokenizer.end_of_text}, **settings.as_dict()))
        ids = [step.token_id for step in steps if step.token_id != tokenizer.end_of_text]
        return {
            "text": tokenizer.decode(ids),
            "tokens": [
                {"token": tokenizer.vocabulary[s.token_id], "id": s.token_id, "probability": s.probability}
                for s in steps
            ],
        }
