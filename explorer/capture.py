"""Reading a model's inner values by forward hooks."""

import threading
from collections.abc import Sequence
from functools import cache

import torch

from explorer.trace import Trace
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM


def capture(lm: TransformerLM, token_ids: Sequence[int], *, tokenizer: Tokenizer | None = None) -> Trace:
    """Run the model once over the tokens and keep every value it names.

    Hooks are shared by all threads that use the model, so each ignores passes of other threads; they are gone when
    this returns or raises.

    Args:
        token_ids: 1 to context_length ids.
        tokenizer: for the tokens' texts; without it their ids stand for them.

    Raises:
        ValueError: there are no tokens, more than the context length, or one that is not in the vocabulary.
    """
    config = lm.config
    if not 0 < len(token_ids) <= config.context_length:
        raise ValueError(f"a run has 1 to {config.context_length} tokens, got {len(token_ids)}")
    if not all(0 <= token_id < config.vocab_size for token_id in token_ids):
        raise ValueError(f"token ids run from 0 to {config.vocab_size - 1}, got {min(token_ids)} to {max(token_ids)}")
    outputs: dict[str, torch.Tensor] = {}
    thread = threading.get_ident()

    def keep_as(name: str):
        def hook(module, inputs, output):
            if threading.get_ident() == thread:
                outputs[name] = output

        return hook

    handles = []
    try:
        for name, module in lm.taps.items():
            handles.append(module.register_forward_hook(keep_as(name)))
        with torch.inference_mode():
            lm(torch.tensor([token_ids], device=lm.device))
    finally:
        for handle in handles:
            handle.remove()
    values = {name: output.float().cpu().numpy()[0] for name, output in outputs.items()}
    for value in values.values():
        value.flags.writeable = False
    vocabulary = tokenizer.vocabulary if tokenizer else ids_as_text(config.vocab_size)
    return Trace(config, tuple(token_ids), vocabulary, values)


@cache
def ids_as_text(vocab_size: int) -> tuple[str, ...]:
    return tuple(map(str, range(vocab_size)))
