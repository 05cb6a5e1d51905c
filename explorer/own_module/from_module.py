"""A model of ours with the weights of another's module."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from explorer.language import _
from explorer.own_module.described import configs, with_context
from explorer.own_module.names import Match, Table, match
from explorer.own_module.running import logits_of, own_copy
from explorer.own_module.weights import with_weights
from explorer.state.errors import UserError
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

TOLERANCE = 1e-4  # of the largest logit


def from_module(
    module: nn.Module,
    *,
    config: ModelConfig | None = None,
    names: Table | None = None,
    example_ids: Sequence[int],
) -> TransformerLM:
    """A `TransformerLM` with the module's weights, whose logits of some tokens are the module's.

    The module itself is neither changed nor kept.

    Args:
        config: of the model; None: sizes are read off the weights, and what no shape tells, such as how many heads
            there are, off the module's attributes, or found by trying.
        names: the module's names -> ours, for what no known spelling has (see `explorer.own_module.names`).
        example_ids: tokens on which both are compared.

    Raises:
        UserError: the weights have no place in a model of ours, or the logits differ: `diagnose` says where.
    """
    student = own_copy(module)
    found = match(student, names)
    lm, error, scale = nearest(student, found, config, example_ids)
    if not error <= TOLERANCE * max(1.0, scale):
        raise UserError(
            _(
                "The logits differ by up to {error:.3g}, where the module’s are up to {scale:.3g}: it computes "
                "something else than its weights say. `diagnose` says where the two part.",
                error=error,
                scale=scale,
            )
        )
    return lm


def nearest(
    student: nn.Module, found: Match, config: ModelConfig | None, example_ids: Sequence[int]
) -> tuple[TransformerLM, float, float]:
    """Of the models that the weights may be, the first whose logits are the module's, or else the likeliest; by how
    much its logits differ, and how large the module's are.

    Raises:
        UserError: there is none, or the module fails.
    """
    ids = list(example_ids)
    check_ids(ids, found)
    known = (
        logits_of(student, ids, len(found.parts["token_embedding"].weight))
        if "token_embedding" in found.parts
        else None
    )
    tried, refused = [], None
    for each in [config] if config else configs(student, found):
        try:
            lm = with_weights(with_context(each, len(ids)), found)
        except UserError as error:
            refused = refused or error
            continue
        error, scale = difference(lm, ids, known)
        tried.append((lm, error, scale))
        if error <= TOLERANCE * max(1.0, scale):
            return tried[-1]
    if not tried:
        raise refused or UserError(
            _("Nothing says how many heads the module has: give config= (--config num_heads=…).")
        )
    return tried[0]


def check_ids(token_ids: Sequence[int], found: Match) -> None:
    """UserError unless there are tokens, and the module has an embedding of each."""
    if "token_embedding" in found.parts:
        most = len(found.parts["token_embedding"].weight)
        if not token_ids or not all(0 <= token_id < most for token_id in token_ids):
            raise UserError(_("The example tokens must be one or more ids from 0 to {last}.", last=most - 1))


def difference(lm: TransformerLM, token_ids: Sequence[int], known: Tensor) -> tuple[float, float]:
    with torch.inference_mode():
        own = lm(torch.tensor([list(token_ids)]))[0]
    scale = known.abs().max().item()
    return (own - known).abs().max().item(), scale
