"""Two prompts with different answers: patching from one into the other, and the metrics of the answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from explorer.errors import UserError
from explorer.state.token_alignment import Partners
from explorer.tracing.forward_hooks import record_outputs
from explorer.tracing.token_ids import check_ids, check_tokens
from explorer.translations import _
from model.config import ModelConfig
from model.transformer_lm import TransformerLM, check_finite

DIRECTIONS = ("denoise", "noise")
BY_POSITION = ("resid_pre", "attn.out", "ffn.out")  # values (1, T, D): a position at a time
BY_HEAD = ("attn.z", "attn.q", "attn.k", "attn.v", "attn.pattern")  # (1, H, …): a head at a time, at all positions
COMPONENTS = BY_POSITION + BY_HEAD
Receiver = str | tuple[int, int, str]  # "logits", or a layer, a head and "q", "k" or "v"

MIN_DIFFERENCE = 1e-6  # between the metric of the clean and of the corrupted run; less has no effects


def normalise_changes(changes: np.ndarray, clean: float, corrupted: float) -> np.ndarray:
    """Return changes of a metric as shares of the difference between the clean and the corrupted run.

    NaN if that difference is less than 1e-6: then there is nothing to explain.
    """
    if abs(clean - corrupted) < MIN_DIFFERENCE:
        return np.full_like(changes, np.nan)
    return changes / (clean - corrupted)


def normalised_effect(patched: np.ndarray, clean: float, corrupted: float, direction: str) -> np.ndarray:
    """Return the normalised effects of patched runs (Heimersheim & Nanda 2024, arXiv:2404.15255).

    (m − m(corrupted)) / (m(clean) − m(corrupted)) if the corrupted run was denoised: 0 if nothing was gained, 1 if
    all was. (m − m(clean)) / (m(clean) − m(corrupted)) if the clean run was noised: 0 if nothing was lost, −1 if
    all was.
    """
    return normalise_changes(patched - (corrupted if direction == "denoise" else clean), clean, corrupted)


def check_component(component: str):
    """Raise UserError if the name is none of COMPONENTS."""
    if component not in COMPONENTS:
        raise UserError(_("wanted one of {known}, got {got!r}", known=", ".join(COMPONENTS), got=component))


def component_taps(component: str, num_layers: int) -> list[str]:
    """Return the taps of a component, layer by layer."""
    return [f"blocks.{layer}.{component}" for layer in range(num_layers)]


def num_layers_before(config: ModelConfig, receiver: Receiver) -> int:
    """Return the number of layers whose heads can reach the receiver."""
    return config.num_layers if receiver == "logits" else receiver[0]


def logit_difference(logits: Tensor, answer: int, wrong: int) -> Tensor:
    """Return the answer's logit minus the wrong answer's, (..., V) -> (...)."""
    return logits[..., answer] - logits[..., wrong]


def log_probability(logits: Tensor, answer: int, wrong: int) -> Tensor:
    """Return ln of the answer's probability, (..., V) -> (...)."""
    return logits.log_softmax(-1)[..., answer]


def probability(logits: Tensor, answer: int, wrong: int) -> Tensor:
    """Return the answer's probability, (..., V) -> (...); a decrease of a small probability can hardly be seen."""
    return logits.softmax(-1)[..., answer]


METRIC_FUNCTIONS: dict[str, Callable[[Tensor, int, int], Tensor]] = {
    "logit_difference": logit_difference,
    "log_probability": log_probability,
    "probability": probability,
}
METRICS = tuple(METRIC_FUNCTIONS)


@dataclass(frozen=True)
class PatchingSetup:
    """A clean and a corrupted prompt, and the metric that is measured at the last position of either.

    Values of the source run are patched into the target run: denoising patches clean values into the corrupted run,
    noising the other way round. The two are not symmetric (Heimersheim & Nanda 2024, arXiv:2404.15255): the first
    finds components that are sufficient for the answer, the second components that are necessary.

    Attributes:
        answer, wrong: ids of the right and the wrong token after the clean prompt.
        direction: "denoise" or "noise".
        metric: one of METRICS.
        partners: for each target position the source position whose value it takes; None for a position that keeps
            its own value. None: the same position; both prompts then have the same length.

    Raises:
        UserError: the prompts differ in length and have no partners, or the model cannot read them; an id, the
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
            message = _(
                "values go from one prompt to the other position by position, so both must have as many tokens, got "
                "{clean} and {corrupted}",
                clean=clean,
                corrupted=corrupted,
            )
            raise UserError(message)
        for token_ids in (self.clean_ids, self.corrupted_ids):
            check_tokens(self.lm.config, token_ids)
        check_ids(self.lm.config, (self.answer, self.wrong))
        for value, allowed in ((self.direction, DIRECTIONS), (self.metric, METRICS)):
            if value not in allowed:
                raise UserError(_("wanted one of {known}, got {got!r}", known=", ".join(allowed), got=value))

    @property
    def target_ids(self) -> Sequence[int]:
        return self.corrupted_ids if self.direction == "denoise" else self.clean_ids

    @property
    def source_ids(self) -> Sequence[int]:
        return self.clean_ids if self.direction == "denoise" else self.corrupted_ids

    def record(self, token_ids: Sequence[int], taps: Sequence[str]) -> dict[str, Tensor]:
        """Return a run's values at taps: name -> (1, …)."""
        with record_outputs({name: self.lm.taps[name] for name in taps}) as values, torch.inference_mode():
            self.lm(self.batch(token_ids))
        return values

    def source_values(self, taps: Sequence[str]) -> dict[str, Tensor]:
        """Return the source's values at the target's positions: name -> (1, …, T, N).

        Positions without a partner have the target's own value, so that nothing changes there.
        """
        source = self.record(self.source_ids, taps)
        if self.partners is None:
            return source
        target_indices, source_indices = zip(*self.aligned_positions, strict=True)
        patched = self.record(self.target_ids, taps)
        for tap, value in patched.items():
            patched[tap] = value.clone()
            patched[tap][..., target_indices, :] = source[tap][..., source_indices, :]
        return patched

    @property
    def aligned_positions(self) -> list[tuple[int, int]]:
        """Pairs of target and source positions between which values are patched."""
        partners = range(len(self.target_ids)) if self.partners is None else self.partners
        return [(position, partner) for position, partner in enumerate(partners) if partner is not None]

    def to_clean_positions(self, values: np.ndarray) -> np.ndarray:
        """Reorder values from the target's positions, (…, T), to the clean prompt's; NaN where nothing is patched."""
        aligned = np.full((*values.shape[:-1], len(self.clean_ids)), np.nan)
        for position, partner in self.aligned_positions:
            aligned[..., partner if self.direction == "denoise" else position] = values[..., position]
        return aligned

    def batch(self, token_ids: Sequence[int]) -> Tensor:
        """Return token ids as a batch of one, (1, T)."""
        return torch.tensor([list(token_ids)], device=self.lm.device)

    def measure_all(self, logits: Tensor) -> Tensor:
        """Return every metric at the last position, in METRICS' order: (N, T, V) -> (M, N), float64 on the CPU."""
        check_finite(logits[:, -1], self.lm.dtype)
        last = logits[:, -1].cpu().double()
        return torch.stack([metric(last, self.answer, self.wrong) for metric in METRIC_FUNCTIONS.values()])

    @cached_property
    def all_unpatched_metrics(self) -> np.ndarray:
        """Every metric of the clean and the corrupted run, (2, M)."""
        with torch.inference_mode():
            both = (self.lm(self.batch(token_ids)) for token_ids in (self.clean_ids, self.corrupted_ids))
            return torch.stack([self.measure_all(logits)[:, 0] for logits in both]).numpy()

    @property
    def unpatched_metrics(self) -> tuple[float, float]:
        """The metric of the clean and the corrupted run."""
        return tuple(self.all_unpatched_metrics[:, METRICS.index(self.metric)].tolist())

    def normalised_effects(self, measured: np.ndarray) -> np.ndarray:
        """Return the effects of patched runs on the metric; see `normalised_effect`."""
        return normalised_effect(measured, *self.unpatched_metrics, self.direction)
