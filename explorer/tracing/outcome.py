"""What a run with some changes makes of one next token, when nothing else of the run is asked for."""

from collections.abc import Sequence

import numpy as np
import torch

from explorer.state.interventions import Intervention
from explorer.tracing.intervening import edited, reads_last_alone
from explorer.tracing.work import go_on
from model.overflow import check_finite
from model.transformer_lm import TransformerLM


def outcome(
    lm: TransformerLM, token_ids: Sequence[int], edits: Sequence[Intervention], position: int, token_id: int
) -> np.ndarray:
    """(2,) float64: the logit of a token after a position, and ln of its probability.

    Raises:
        UserError: the model has not what an edit changes.
        TooMuch, GivenUp: see `explorer.tracing.work.go_on`.
    """
    logits = logits_after(lm, token_ids, edits, position)
    return torch.stack((logits[token_id], logits.log_softmax(-1)[token_id])).numpy()


def logits_after(
    lm: TransformerLM, token_ids: Sequence[int], edits: Sequence[Intervention], position: int
) -> torch.Tensor:
    """(V,) float64 on the CPU; errors are those of `outcome`."""
    # A mean is over all of its tokens; else what comes later has no say.
    edits = [edit if edit.least_tokens else edit.of_prompt(token_ids) for edit in edits]
    length = max(position + 1, *(edit.least_tokens for edit in edits), 0)
    go_on(tokens=length)
    ids = torch.tensor([token_ids[:length]], device=lm.device)
    with edited(lm, edits), torch.inference_mode():
        logits = lm(ids, last_only=reads_last_alone(edits, length, position))
    check_finite(logits[0, position - length], lm.dtype)
    return logits[0, position - length].cpu().double()
