"""Validation of token ids."""

from collections.abc import Sequence

from explorer.state.errors import UserError
from explorer.translations import _
from model.config import ModelConfig


def check_tokens(config: ModelConfig, token_ids: Sequence[int]):
    """Raise UserError if a model cannot read the tokens."""
    if not 0 < len(token_ids) <= config.context_length:
        raise UserError(_("a run has 1 to {most} tokens, got {got}", most=config.context_length, got=len(token_ids)))
    check_ids(config, token_ids)


def check_ids(config: ModelConfig, token_ids: Sequence[int]):
    """Raise UserError if an id is not in a model's vocabulary."""
    if not all(0 <= token_id < config.vocab_size for token_id in token_ids):
        message = _("token ids run from 0 to {last}, got {least} to {most}")
        raise UserError(message.format(last=config.vocab_size - 1, least=min(token_ids), most=max(token_ids)))
