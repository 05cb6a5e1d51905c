"""Logit and log-probability of one next token in a run with interventions."""

from collections.abc import Sequence

import numpy as np
import torch

from explorer.state.interventions import Intervention
from explorer.tracing.apply_interventions import apply_interventions, needs_only_last_logits
from explorer.tracing.request_budget import check_budget
from model.overflow import check_finite
from model.transformer_lm import TransformerLM


def next_token_outcome(
    lm: TransformerLM, token_ids: Sequence[int], interventions: Sequence[Intervention], position: int, token_id: int
) -> np.ndarray:
    """Compute the logit of a token after a position and ln of its probability, (2,) float64.

    Raises:
        UserError: the model has no value that an intervention changes.
        BudgetExceededError, RequestCancelledError: see `explorer.tracing.request_budget.check_budget`.
    """
    logits = next_token_logits(lm, token_ids, interventions, position)
    return torch.stack((logits[token_id], logits.log_softmax(-1)[token_id])).numpy()


def next_token_logits(
    lm: TransformerLM, token_ids: Sequence[int], interventions: Sequence[Intervention], position: int
) -> torch.Tensor:
    """Compute the logits after a position, (V,) float64 on the CPU; raises as `next_token_outcome` does."""
    # A mean needs all its tokens; otherwise later tokens have no influence.
    interventions = [
        intervention if intervention.min_tokens else intervention.for_prompt(token_ids)
        for intervention in interventions
    ]
    length = max(position + 1, *(intervention.min_tokens for intervention in interventions), 0)
    check_budget(tokens=length)
    ids = torch.tensor([token_ids[:length]], device=lm.device)
    with apply_interventions(lm, interventions), torch.inference_mode():
        logits = lm(ids, last_only=needs_only_last_logits(interventions, length, position))
    check_finite(logits[0, position - length], lm.dtype)
    return logits[0, position - length].cpu().double()
