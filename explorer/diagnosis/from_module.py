"""Import a module as a `TransformerLM` with its weights."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from explorer.diagnosis.candidate_configs import candidate_configs, with_context
from explorer.diagnosis.match_weights import Table, WeightMatch, match_weights
from explorer.diagnosis.run_module import copy_module, run_module
from explorer.errors import UserError
from explorer.translations import _
from model.checkpoint_reader import check_weights, weight_shapes
from model.config import ModelConfig
from model.errors import ModelError
from model.offloading import build_model
from model.transformer_lm import TransformerLM


def build_with_weights(config: ModelConfig, match: WeightMatch) -> TransformerLM:
    """Build a float32 model in eval mode without gradients; a bias that the module lacks is 0.

    Raises:
        UserError: the weights are not those of the config; the message names the first.
    """
    weights = {}
    for name, location in match.locations.items():
        weights[f"{name}.weight"] = location.weight
        if location.bias is not None:
            weights[f"{name}.bias"] = location.bias
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
            _(
                "The module’s weights do not fit a model with {sizes}: {why}",
                sizes=format_sizes(config),
                why=error,
            )
        ) from None
    return build_model(config, weights.items())


def format_sizes(config: ModelConfig) -> str:
    """Format a config's main sizes as NAME=VALUE."""
    names = "vocab_size", "d_model", "num_layers", "num_heads", "d_ff"
    return ", ".join(f"{name}={getattr(config, name)}" for name in names)


TOLERANCE = 1e-4  # relative to the largest logit


def from_module(
    module: nn.Module,
    *,
    config: ModelConfig | None = None,
    names: Table | None = None,
    example_ids: Sequence[int],
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
    lm, error, scale = best_model(student, match, config, example_ids)
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


def best_model(
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
        run_module(student, ids, len(match.locations["token_embedding"].weight))
        if "token_embedding" in match.locations
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
    if "token_embedding" in match.locations:
        vocab_size = len(match.locations["token_embedding"].weight)
        if not token_ids or not all(0 <= token_id < vocab_size for token_id in token_ids):
            raise UserError(_("The example tokens must be one or more ids from 0 to {last}.", last=vocab_size - 1))


def logit_error(lm: TransformerLM, token_ids: Sequence[int], logits: Tensor) -> tuple[float, float]:
    """Return the largest absolute difference from some logits, and the largest of those."""
    with torch.inference_mode():
        lm_logits = lm(torch.tensor([list(token_ids)]))[0]
    scale = logits.abs().max().item()
    return (lm_logits - logits).abs().max().item(), scale
