"""Run a user's module, whose exceptions become `UserError`; trace it by our names; import it as a `TransformerLM`."""

import contextlib
import copy
import math
import re
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from explorer.architecture.formulas import token_axes
from explorer.diagnosis.match_weights import Table, WeightMatch, match_weights
from explorer.diagnosis.module_settings import CONTEXT, HEADS, candidate_configs, find_attribute, with_context
from explorer.errors import UserError
from explorer.tracing.capture import id_labels
from explorer.tracing.trace import Trace
from explorer.translations import _
from model.checkpoint_reader import check_weights, weight_shapes
from model.config import ModelConfig
from model.errors import ModelError
from model.transformer_lm import TransformerLM
from model.weight_placement import build_model

TERMINAL_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
STANDARD_LIBRARY = Path(contextlib.__file__).parent  # Python's standard library


def copy_module(module: nn.Module) -> nn.Module:
    """Return a copy in float32 on the CPU and in eval mode, without gradients.

    Raises:
        UserError: it cannot be copied, or is no module.
    """
    if not isinstance(module, nn.Module):
        raise UserError(_("A torch.nn.Module is asked for, got {got}.", got=type(module).__name__))
    with errors_as_user_errors(_("The module cannot be copied")):
        return copy.deepcopy(module).to("cpu").float().eval().requires_grad_(False)


def run_module(module: nn.Module, token_ids: Sequence[int], vocab_size: int) -> Tensor:
    """Return the logits (T, V) in float32; the module may return a tensor, a tuple, or an object with `.logits`.

    Raises:
        UserError: the module fails, or its output is no logits of every token.
    """
    with torch.no_grad(), errors_as_user_errors(_("The module fails on {count} tokens", count=len(token_ids))):
        output = module(torch.tensor([list(token_ids)]))
    output = getattr(output, "logits", output)
    output = output[0] if isinstance(output, tuple | list) else output
    expected_shape = len(token_ids), vocab_size
    if not isinstance(output, Tensor):
        raise UserError(_("The module gives {got} in the place of logits.", got=type(output).__name__))
    if tuple(output.shape) == (1, 1, vocab_size) and len(token_ids) > 1:
        output = _logits_by_prefix(module, token_ids)
    if output.numel() != expected_shape[0] * expected_shape[1]:
        raise UserError(
            _(
                "The module gives {got} for {count} tokens, where logits are (1, {count}, {size}).",
                got=tuple(output.shape),
                count=len(token_ids),
                size=vocab_size,
            )
        )
    return output.detach().float().reshape(expected_shape)


def _logits_by_prefix(module: nn.Module, token_ids: Sequence[int]) -> Tensor:
    """Return the logits of a module that returns only the last token's, as nanoGPT without targets does."""
    rows = []
    for end in range(1, len(token_ids) + 1):
        output = module(torch.tensor([list(token_ids[:end])]))
        output = getattr(output, "logits", output)
        rows.append((output[0] if isinstance(output, tuple | list) else output)[0, -1])
    return torch.stack(rows)


@contextmanager
def errors_as_user_errors(description: str):
    """Context manager: raise exceptions of a user's code as a `UserError` that begins with `description`."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # anything can be raised by code that is not ours
        texts = f"{description}: {type(error).__name__}: {first_line(error)}", error_location(error)
        raise UserError(" ".join(filter(None, texts))) from error


def error_location(error: BaseException) -> str:
    """Return the file and line in the user's code where an error was raised; "" where unknown."""
    own_folder = str(Path(__file__).parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename and not frame.filename.startswith((own_folder, "<"))
    ]
    if not frames or STANDARD_LIBRARY in Path(frames[-1].filename).parents:
        return ""
    return _("({file}, line {line})", file=Path(frames[-1].filename).name, line=frames[-1].lineno)


def first_line(error: Any) -> str:
    """Return the first line of a text, without terminal colour codes, up to 200 characters."""
    return (TERMINAL_CODES.sub("", str(error)).strip().splitlines() or [""])[0][:200]


INPUT = ".in"  # after a part's name: what it reads, not what it gives
HEAD_TAPS = re.compile(r"blocks\.\d+\.attn\.(q|k|v|q_rot|k_rot|z|scores|pattern)")
PAIR_TAPS = "scores", "pattern"  # with a query and a key axis: heads need an axis of their own
LAYER = re.compile(r"blocks\.(\d+)\.")


def trace_module(
    module: nn.Module,
    token_ids: Sequence[int],
    parts: Mapping[str, str],
    *,
    config: ModelConfig | None = None,
    tokenizer: Any = None,
) -> Trace:
    """Run any module on some tokens and return the outputs of submodules as a `Trace`.

    Views draw what is available, and say what is missing. There are no weights, so that nothing is recomputed.

    Args:
        parts: our name of a value -> the submodule that outputs it, with * for the layer number in both:
            {"blocks.*.resid_post": "model.layers.*"}; with ".in" for its first input. Of several tensors the first
            counts, or the one with the index in brackets, as in "h.*.attn[1]".
        config: of the model, for its numbers of heads and layers; None: inferred from values and attributes.
        tokenizer: for the tokens' texts; None: their ids.

    Raises:
        UserError: there is no such submodule, its output is no such value, or the module fails.
    """
    modules, outputs, length = dict(module.named_modules()), {}, len(token_ids)
    sources = {
        name: source
        for our_name, module_name in parts.items()
        for name, source in expand_layer_wildcards(our_name, module_name, modules)
    }
    with ExitStack() as hooks, torch.no_grad():
        for name, (path, index, reads) in sources.items():
            hooks.callback(_add_hook(modules[path], name, index, reads, outputs))
        was_training = module.training
        hooks.callback(module.train, was_training)
        module.eval()
        with errors_as_user_errors(_("The module fails on {count} tokens", count=length)):
            output = module(torch.tensor([list(token_ids)], device=module_device(module)))
    logits = getattr(output, "logits", output)
    outputs.setdefault("logits", logits[0] if isinstance(logits, tuple | list) else logits)
    for name, value in outputs.items():
        if not isinstance(value, Tensor):
            raise UserError(_("{name} is no tensor but {got}.", name=name, got=type(value).__name__))
    arrays = {name: value.detach().float().cpu().numpy() for name, value in outputs.items()}
    config = config or infer_config_from_values(module, arrays, length)
    values = {name: arrange_axes(name, arrays[name], config, length) for name in (*sources, "logits")}
    vocabulary = tokenizer.vocabulary if tokenizer else id_labels(config.vocab_size)
    return Trace(config, tuple(token_ids), vocabulary, values)


def expand_layer_wildcards(
    our_name: str, module_name: str, modules: Mapping[str, nn.Module]
) -> list[tuple[str, tuple[str, int, bool]]]:
    """Return each of our names with the submodule's path, the tensor's index, and whether it is an input."""
    reads, bare = module_name.endswith(INPUT), module_name.removesuffix(INPUT)
    index_match = re.fullmatch(r"(.*?)(?:\[(\d+)\])?", bare)
    pattern = re.compile(re.escape(index_match[1]).replace(r"\*", r"(\d+)"))
    matches = [(path, match) for path in modules if (match := pattern.fullmatch(path))]
    if not matches:
        raise UserError(_("The module has no part {name}.", name=index_match[1]))
    return [
        (our_name.replace("*", match[1]) if match.groups() else our_name, (path, int(index_match[2] or 0), reads))
        for path, match in matches
    ]


def _add_hook(module: nn.Module, name: str, index: int, reads: bool, outputs: dict[str, Any]):
    def note(_module: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        values = (*args, *kwargs.values()) if reads else output
        outputs.setdefault(name, values[index] if isinstance(values, tuple | list) else values)

    return module.register_forward_hook(note, with_kwargs=True).remove


def module_device(module: nn.Module) -> torch.device:
    """Return the device of a module's first parameter; the CPU without parameters."""
    return next((weight.device for weight in module.parameters()), torch.device("cpu"))


def arrange_axes(name: str, value: np.ndarray, config: ModelConfig, length: int) -> np.ndarray:
    """Remove the batch axis, and arrange values of heads as (H, T, …).

    Raises:
        UserError: its shape does not fit.
    """
    value = value[0] if value.ndim > 2 and value.shape[0] == 1 else value
    if HEAD_TAPS.fullmatch(name) and value.ndim == 2 and not name.endswith(PAIR_TAPS):
        heads = config.kv_heads if name.split(".")[-1] in ("k", "v", "k_rot") else config.num_heads
        value = value.reshape(length, heads, -1).swapaxes(0, 1) if value.shape[-1] % heads == 0 else value
    if HEAD_TAPS.fullmatch(name) and value.ndim == 3 and value.shape[0] == length != config.num_heads:
        value = value.swapaxes(0, 1)
    expected_ndim = 3 if HEAD_TAPS.fullmatch(name) else 2
    if value.ndim != expected_ndim or any(value.shape[axis] != length for axis in token_axes(name)):
        raise UserError(
            _("{name} has the shape {got}, which is none of {count} tokens.", name=name, got=value.shape, count=length)
        )
    return np.ascontiguousarray(value)


def infer_config_from_values(module: nn.Module, values: Mapping[str, np.ndarray], length: int) -> ModelConfig:
    """Infer sizes from the values, and the number of heads from the module's attributes."""
    layers = [int(layer_match[1]) for name in values if (layer_match := LAYER.match(name))]
    streams = [
        value.shape[-1] for name, value in values.items() if not HEAD_TAPS.fullmatch(name) and "ffn." not in name
    ]
    head_counts = [value.shape[1] for name, value in values.items() if HEAD_TAPS.fullmatch(name) and value.ndim == 4]
    heads = next(iter(head_counts), None) or find_attribute(module, HEADS) or 1
    neurons = [value.shape[-1] for name, value in values.items() if name.endswith(("ffn.hidden", "ffn.up", "ffn.gate"))]
    width = math.gcd(*streams[:-1]) if len(streams) > 1 else heads
    try:
        return ModelConfig(
            vocab_size=values["logits"].shape[-1],
            context_length=max(length, int(find_attribute(module, CONTEXT) or 0)),
            d_model=width,
            num_layers=max(layers, default=0) + 1,
            num_heads=heads,
            d_ff=next(iter(neurons), 4 * width),
            position="none",
            head_dim=None if width % heads == 0 else 1,
        )
    except ModelError as error:
        raise UserError(_("The module’s sizes make no model: {why}", why=error)) from None


def build_with_weights(config: ModelConfig, match: WeightMatch) -> TransformerLM:
    """Build a float32 model in eval mode without gradients; a bias that the module lacks is 0.

    Raises:
        UserError: the weights are not those of the config; the message names the first.
    """
    weights = {}
    for name, matched in match.matched_modules.items():
        weights[f"{name}.weight"] = matched.weight
        if matched.bias is not None:
            weights[f"{name}.bias"] = matched.bias
    if config.tie_embeddings:
        weights.pop("lm_head.weight", None)
    for name, shape in weight_shapes(config):
        if name.endswith(".bias") and name not in weights:
            weights[name] = torch.zeros(shape)
    weights = {name: weight.to("cpu", torch.float32, copy=True).contiguous() for name, weight in weights.items()}
    try:
        check_weights(config, {name: tuple(weight.shape) for name, weight in weights.items()})
    except ModelError as error:
        raise UserError(
            _("The module’s weights do not fit a model with {sizes}: {why}", sizes=format_sizes(config), why=error)
        ) from None
    return build_model(config, weights.items())


def format_sizes(config: ModelConfig) -> str:
    """Format a config's main sizes as NAME=VALUE."""
    names = "vocab_size", "d_model", "num_layers", "num_heads", "d_ff"
    return ", ".join(f"{name}={getattr(config, name)}" for name in names)


TOLERANCE = 1e-4  # relative to the largest logit


def from_module(
    module: nn.Module, *, config: ModelConfig | None = None, names: Table | None = None, example_ids: Sequence[int]
) -> TransformerLM:
    """Build a `TransformerLM` with the module's weights, and check that its logits are the module's.

    The module is not changed.

    Args:
        config: of the model; None: sizes are read from the weights; what no shape tells, such as the number of
            heads, from the module's attributes, or by trial.
        names: the module's names -> ours, for those that no known table has (see
            `explorer.diagnosis.match_weights`).
        example_ids: tokens on which both are compared.

    Raises:
        UserError: the weights do not fit, or the logits differ: `diagnose` finds where.
    """
    student = copy_module(module)
    match = match_weights(student, names)
    lm, error, scale = find_equal_model(student, match, config, example_ids)
    if not error <= TOLERANCE * max(1.0, scale):
        raise UserError(
            _(
                "The logits differ by up to {error:.3g} (the module’s are up to {scale:.3g}): the module does not "
                "compute what its weights describe. Run `diagnose` to find the first difference.",
                error=error,
                scale=scale,
            )
        )
    return lm


def find_equal_model(
    student: nn.Module, match: WeightMatch, config: ModelConfig | None, example_ids: Sequence[int]
) -> tuple[TransformerLM, float, float]:
    """Return the first candidate model whose logits are the module's, or else the likeliest.

    Returns:
        The model, the largest difference of its logits, and the module's largest absolute logit.

    Raises:
        UserError: there is none, or the module fails.
    """
    ids = list(example_ids)
    check_ids(ids, match)
    logits = (
        run_module(student, ids, len(match.matched_modules["token_embedding"].weight))
        if "token_embedding" in match.matched_modules
        else None
    )
    tried, first_error = [], None
    for candidate in [config] if config else candidate_configs(student, match):
        try:
            lm = build_with_weights(with_context(candidate, len(ids)), match)
        except UserError as error:
            first_error = first_error or error
            continue
        error, scale = logit_error(lm, ids, logits)
        tried.append((lm, error, scale))
        if error <= TOLERANCE * max(1.0, scale):
            return tried[-1]
    if not tried:
        raise first_error or UserError(
            _("The module’s number of heads cannot be inferred: set it with config= (--config num_heads=…).")
        )
    return tried[0]


def check_ids(token_ids: Sequence[int], match: WeightMatch) -> None:
    """Raise a UserError unless there are tokens, and the module has an embedding for each."""
    if "token_embedding" in match.matched_modules:
        vocab_size = len(match.matched_modules["token_embedding"].weight)
        if not token_ids or not all(0 <= token_id < vocab_size for token_id in token_ids):
            raise UserError(_("The example tokens must be one or more ids from 0 to {last}.", last=vocab_size - 1))


def logit_error(lm: TransformerLM, token_ids: Sequence[int], logits: Tensor) -> tuple[float, float]:
    """Return the largest absolute difference from some logits, and the largest of those."""
    with torch.inference_mode():
        lm_logits = lm(torch.tensor([list(token_ids)]))[0]
    scale = logits.abs().max().item()
    return (lm_logits - logits).abs().max().item(), scale
