"""A trace of any module: what some of its parts give, by our names for it."""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from explorer.architecture.token_axes import token_axes
from explorer.language import _
from explorer.own_module.described import CONTEXT, HEADS, attribute
from explorer.own_module.running import told
from explorer.state.errors import UserError
from explorer.tracing.capture import ids_as_text
from explorer.tracing.trace import Trace
from model.config import ModelConfig
from model.errors import ModelError

INPUT = ".in"  # after a part's name: what it reads, not what it gives
OF_HEADS = re.compile(r"blocks\.\d+\.attn\.(q|k|v|q_rot|k_rot|z|scores|pattern)")
OF_PAIRS = "scores", "pattern"  # of a query and a key each: nothing tells their heads apart but an axis
LAYER = re.compile(r"blocks\.(\d+)\.")


def trace_module(
    module: nn.Module,
    token_ids: Sequence[int],
    parts: Mapping[str, str],
    *,
    config: ModelConfig | None = None,
    tokenizer: Any = None,
) -> Trace:
    """Run any module over some tokens and keep what some of its parts give as the values that these stand for.

    Views draw what is there, and say what they lack. There are no weights, so that nothing is worked out again.

    Args:
        parts: our name of a value -> the module's part that gives it, with * for the number of a layer in both:
            {"blocks.*.resid_post": "model.layers.*"}; with ".in" after it what the part reads first. A part may give
            one tensor, or several of which the first counts, or the one whose place a number in brackets says, as in
            "h.*.attn[1]".
        config: of the model, for its number of heads and layers; None: as its values and attributes tell.
        tokenizer: for the tokens' texts; None: their ids stand for them.

    Raises:
        UserError: there is no such part, it gives no such value, or the module fails.
    """
    modules, seen, length = dict(module.named_modules()), {}, len(token_ids)
    places = {name: place for ours, theirs in parts.items() for name, place in filled(ours, theirs, modules)}
    with ExitStack() as hooks, torch.no_grad():
        for name, (path, index, reads) in places.items():
            hooks.callback(_watch(modules[path], name, index, reads, seen))
        was_training = module.training
        hooks.callback(module.train, was_training)
        module.eval()
        with told(_("The module fails on {count} tokens", count=length)):
            given = module(torch.tensor([list(token_ids)], device=device_of(module)))
    logits = getattr(given, "logits", given)
    seen.setdefault("logits", logits[0] if isinstance(logits, tuple | list) else logits)
    for name, value in seen.items():
        if not isinstance(value, Tensor):
            raise UserError(_("{name} is no tensor but {got}.", name=name, got=type(value).__name__))
    arrays = {name: value.detach().float().cpu().numpy() for name, value in seen.items()}
    config = config or told_by(module, arrays, length)
    values = {name: arranged(name, arrays[name], config, length) for name in (*places, "logits")}
    vocabulary = tokenizer.vocabulary if tokenizer else ids_as_text(config.vocab_size)
    return Trace(config, tuple(token_ids), vocabulary, values)


def filled(ours: str, theirs: str, modules: Mapping[str, nn.Module]) -> list[tuple[str, tuple[str, int, bool]]]:
    """Each name of ours with the path of the part, which of its tensors, and whether what it reads."""
    reads, bare = theirs.endswith(INPUT), theirs.removesuffix(INPUT)
    place = re.fullmatch(r"(.*?)(?:\[(\d+)\])?", bare)
    pattern = re.compile(re.escape(place[1]).replace(r"\*", r"(\d+)"))
    found = [(path, match) for path in modules if (match := pattern.fullmatch(path))]
    if not found:
        raise UserError(_("The module has no part {name}.", name=place[1]))
    return [
        (ours.replace("*", match[1]) if match.groups() else ours, (path, int(place[2] or 0), reads))
        for path, match in found
    ]


def _watch(module: nn.Module, name: str, index: int, reads: bool, seen: dict[str, Any]):
    def note(_module: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        given = (*args, *kwargs.values()) if reads else output
        seen.setdefault(name, given[index] if isinstance(given, tuple | list) else given)

    return module.register_forward_hook(note, with_kwargs=True).remove


def device_of(module: nn.Module) -> torch.device:
    return next((weight.device for weight in module.parameters()), torch.device("cpu"))


def arranged(name: str, value: np.ndarray, config: ModelConfig, length: int) -> np.ndarray:
    """Without a batch axis; values of heads as (H, T, …).

    Raises:
        UserError: its size is another.
    """
    value = value[0] if value.ndim > 2 and value.shape[0] == 1 else value
    if OF_HEADS.fullmatch(name) and value.ndim == 2 and not name.endswith(OF_PAIRS):
        heads = config.kv_heads if name.split(".")[-1] in ("k", "v", "k_rot") else config.num_heads
        value = value.reshape(length, heads, -1).swapaxes(0, 1) if value.shape[-1] % heads == 0 else value
    if OF_HEADS.fullmatch(name) and value.ndim == 3 and value.shape[0] == length != config.num_heads:
        value = value.swapaxes(0, 1)
    wanted = 3 if OF_HEADS.fullmatch(name) else 2
    if value.ndim != wanted or any(value.shape[axis] != length for axis in token_axes(name)):
        raise UserError(
            _("{name} has the shape {got}, which is none of {count} tokens.", name=name, got=value.shape, count=length)
        )
    return np.ascontiguousarray(value)


def told_by(module: nn.Module, values: Mapping[str, np.ndarray], length: int) -> ModelConfig:
    """What the values tell of the model's sizes, and its attributes of its heads."""
    layers = [int(found[1]) for name in values if (found := LAYER.match(name))]
    streams = [value.shape[-1] for name, value in values.items() if not OF_HEADS.fullmatch(name) and "ffn." not in name]
    of_heads = [value.shape[1] for name, value in values.items() if OF_HEADS.fullmatch(name) and value.ndim == 4]
    heads = next(iter(of_heads), None) or attribute(module, HEADS) or 1
    neurons = [value.shape[-1] for name, value in values.items() if name.endswith(("ffn.hidden", "ffn.up", "ffn.gate"))]
    width = math.gcd(*streams[:-1]) if len(streams) > 1 else heads
    try:
        return ModelConfig(
            vocab_size=values["logits"].shape[-1],
            context_length=max(length, int(attribute(module, CONTEXT) or 0)),
            d_model=width,
            num_layers=max(layers, default=0) + 1,
            num_heads=heads,
            d_ff=next(iter(neurons), 4 * width),
            position="none",
            head_dim=None if width % heads == 0 else 1,
        )
    except ModelError as error:
        raise UserError(_("The module’s sizes make no model: {why}", why=error)) from None
