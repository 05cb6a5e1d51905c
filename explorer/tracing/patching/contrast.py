"""Two prompts that are to have different answers: what goes over between them, and what that does to the answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from explorer.language import _
from explorer.state.alignment import Partners
from explorer.state.errors import UserError
from explorer.tracing.effect_scale import share_of_difference
from explorer.tracing.hooks import hooked
from explorer.tracing.patching_question import DIRECTIONS
from explorer.tracing.token_checks import check_ids, check_tokens
from model.overflow import check_finite
from model.transformer_lm import TransformerLM


def logit_difference(logits: Tensor, answer: int, wrong: int) -> Tensor:
    """(..., V) -> (...): the answer's logit less the wrong answer's."""
    return logits[..., answer] - logits[..., wrong]


def log_probability(logits: Tensor, answer: int, wrong: int) -> Tensor:
    """(..., V) -> (...): ln of the answer's probability."""
    return logits.log_softmax(-1)[..., answer]


def probability(logits: Tensor, answer: int, wrong: int) -> Tensor:
    """(..., V) -> (...): the answer's probability. What lowers a small one can hardly be seen in it."""
    return logits.softmax(-1)[..., answer]


METRICS: dict[str, Callable[[Tensor, int, int], Tensor]] = {
    "logit_difference": logit_difference,
    "log_probability": log_probability,
    "probability": probability,
}


@dataclass(frozen=True)
class Contrast:
    """A clean prompt, a corrupted one, and what is measured at the last position of either.

    Values of the donor's run are put into the recipient's: denoising into the corrupted run those of the clean one,
    noising the other way round. The two are not symmetric (Heimersheim & Nanda 2024, arXiv:2404.15255): the first finds
    what suffices for the answer, the second what it needs.

    Attributes:
        answer, wrong: ids of the tokens that are right and wrong after the clean prompt.
        direction: "denoise" or "noise".
        metric: one of METRICS.
        partners: of each of the recipient's positions the donor's whose value it gets; None for a position that keeps
            its own. None where each gets that of the same position: both prompts then have as many tokens.

    Raises:
        UserError: the prompts are not equally long and have no partners, or are none of the model's; an id, the
            direction or the metric is unknown.
    """

    lm: TransformerLM
    clean_ids: Sequence[int]
    corrupted_ids: Sequence[int]
    answer: int
    wrong: int
    direction: str = "denoise"
    metric: str = "logit_difference"
    partners: Partners | None = None

    def __post_init__(self):
        clean, corrupted = len(self.clean_ids), len(self.corrupted_ids)
        if clean != corrupted and self.partners is None:
            told = _(
                "values go from one prompt to the other position by position, so both must have as many tokens, got "
                "{clean} and {corrupted}",
                clean=clean,
                corrupted=corrupted,
            )
            raise UserError(told)
        for token_ids in (self.clean_ids, self.corrupted_ids):
            check_tokens(self.lm.config, token_ids)
        check_ids(self.lm.config, (self.answer, self.wrong))
        for named, known in ((self.direction, DIRECTIONS), (self.metric, METRICS)):
            if named not in known:
                raise UserError(_("wanted one of {known}, got {got!r}", known=", ".join(known), got=named))

    @property
    def recipient_ids(self) -> Sequence[int]:
        return self.corrupted_ids if self.direction == "denoise" else self.clean_ids

    @property
    def donor_ids(self) -> Sequence[int]:
        return self.clean_ids if self.direction == "denoise" else self.corrupted_ids

    def recorded(self, token_ids: Sequence[int], taps: Sequence[str]) -> dict[str, Tensor]:
        """What a run has at taps: name -> (1, …)."""
        found, names = {}, {self.lm.taps[name]: name for name in taps}

        def keep(module, inputs, output):
            found[names[module]] = output

        with hooked(names, keep), torch.inference_mode():
            self.lm(self.batch(token_ids))
        return found

    def donated(self, taps: Sequence[str]) -> dict[str, Tensor]:
        """The donor's values in the recipient's places: name -> (1, …, T, N); the recipient's own where a position has
        no partner, so that nothing is changed there."""
        given = self.recorded(self.donor_ids, taps)
        if self.partners is None:
            return given
        at, taken = zip(*self.pairs, strict=True)
        placed = self.recorded(self.recipient_ids, taps)
        for tap, value in placed.items():
            placed[tap] = value.clone()
            placed[tap][..., at, :] = given[tap][..., taken, :]
        return placed

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Positions of the recipient and of the donor between which values go over."""
        partners = range(len(self.recipient_ids)) if self.partners is None else self.partners
        return [(at, partner) for at, partner in enumerate(partners) if partner is not None]

    def by_clean(self, values: np.ndarray) -> np.ndarray:
        """What was found at the recipient's positions, (…, T), at the clean prompt's; NaN where nothing goes over."""
        found = np.full((*values.shape[:-1], len(self.clean_ids)), np.nan)
        for at, partner in self.pairs:
            found[..., partner if self.direction == "denoise" else at] = values[..., at]
        return found

    def batch(self, token_ids: Sequence[int]) -> Tensor:
        """(1, T)."""
        return torch.tensor([list(token_ids)], device=self.lm.device)

    def measure(self, logits: Tensor) -> Tensor:
        """The metric at the last position: (N, T, V) -> (N,), float64 on the CPU."""
        return METRICS[self.metric](self._last(logits), self.answer, self.wrong)

    def measure_all(self, logits: Tensor) -> Tensor:
        """Every metric at the last position, in the order of METRICS: (N, T, V) -> (M, N), float64 on the CPU."""
        last = self._last(logits)
        return torch.stack([metric(last, self.answer, self.wrong) for metric in METRICS.values()])

    def _last(self, logits: Tensor) -> Tensor:
        check_finite(logits[:, -1], self.lm.dtype)
        return logits[:, -1].cpu().double()

    @cached_property
    def unpatched(self) -> tuple[float, float]:
        """The metric of the clean and of the corrupted run."""
        with torch.inference_mode():
            return tuple(
                float(self.measure(self.lm(self.batch(token_ids)))[0])
                for token_ids in (self.clean_ids, self.corrupted_ids)
            )

    def effects(self, measured: np.ndarray) -> np.ndarray:
        """How far patched runs are on the way between the two.

        (m − m(corrupted)) / (m(clean) − m(corrupted)) where the corrupted run was denoised: 0 where nothing was gained,
        1 where all was. (m − m(clean)) / (m(clean) − m(corrupted)) where the clean run was noised: 0 where nothing was
        lost, −1 where all was. NaN where the two hardly differ, by less than 1e-6: then there is nothing to explain.
        """
        clean, corrupted = self.unpatched
        return self.shares(measured - (corrupted if self.direction == "denoise" else clean))

    def shares(self, changes: np.ndarray) -> np.ndarray:
        """Changes of the metric as shares of the difference between clean and corrupted; NaN where that is none."""
        return share_of_difference(changes, *self.unpatched)
