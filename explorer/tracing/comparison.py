"""Comparison of two runs, and the values that a patch takes from another run at aligned positions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.architecture.formulas import token_axes
from explorer.errors import UserError
from explorer.interventions import CrossRunIntervention, Intervention, PatchMean, index_axis
from explorer.interventions.intervention import HEADS, KV_HEADS
from explorer.interventions.patch import PatchValues, no_source_message, source_too_short_message
from explorer.state.token_alignment import Alignment, Partners, Pins, align_tokens
from explorer.tracing.trace import Trace
from explorer.translations import _
from model.config import ModelConfig


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run and another that it is compared with.

    Attributes:
        trace: of the run, "A".
        other: of the other run, "B".
        alignment: of their tokens.
        is_unchanged: whether the other is the same run without its interventions.
        pins: pairs of positions that the user aligned.
        prompts: numbers of prompt tokens of A and B; None: all tokens.
    """

    trace: Trace
    other: Trace
    alignment: Alignment
    is_unchanged: bool = False
    pins: Pins = ()
    prompts: tuple[int, int] | None = None

    @classmethod
    def from_traces(cls, trace: Trace, other: Trace, pins: Pins = ()) -> "Comparison":
        """Return the comparison of two runs, with their tokens aligned by text."""
        unchanged = (
            bool(trace.edits) and not other.edits and (trace.model, trace.token_ids) == (other.model, other.token_ids)
        )
        return cls(trace, other, align_tokens(trace.tokens, other.tokens, pins), unchanged, pins)

    @classmethod
    def with_unchanged(cls, trace: Trace) -> "Comparison":
        """Return the comparison of a run that has interventions with its `baseline`."""
        return cls.from_traces(trace, trace.baseline)

    @property
    def runs(self) -> tuple[Trace, Trace]:
        """Both traces, A first."""
        return self.trace, self.other

    def aligned_other(self, name: str) -> np.ndarray:
        """Return a value of run B at the tokens of run A: NaN along its token axes where a token has no partner.

        Raises:
            KeyError: run B captured no such value.
        """
        value = self.other[name]
        for axis in () if self.alignment.is_identity else token_axes(name):
            value = self.take_aligned(value, axis)
        return value

    def take_aligned(self, values: np.ndarray, axis: int = 0) -> np.ndarray:
        """Reorder an axis over the tokens of run B to the tokens of run A; NaN for gaps."""
        return take_or_nan(values, self.alignment.partners, axis)

    @property
    def prompt_ids(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Token ids of both prompts, A first."""
        counts = self.prompts or (len(self.trace), len(self.other))
        return self.trace.token_ids[: counts[0]], self.other.token_ids[: counts[1]]

    @property
    def has_aligned_tokens(self) -> bool:
        """True if tokens of one run are aligned with tokens of the other."""
        return self.alignment.kind != "none"


def take_or_nan(values: np.ndarray, indices: Sequence[int | None], axis: int) -> np.ndarray:
    """Return the values at some indices of an axis; NaN for None."""
    widths = [(0, int(i == axis % values.ndim)) for i in range(values.ndim)]
    with_nan = np.pad(values, widths, constant_values=np.nan)  # the last of the axis
    return np.take(with_nan, [-1 if index is None else index for index in indices], axis)


BY_QUERY_AND_KEY = "attn.pattern"  # the end of names of values whose last axis counts tokens, too


def resolve_patches(
    interventions: Iterable[Intervention],
    config: ModelConfig,
    token_ids: Sequence[int],
    vocabulary: Sequence[str] | None,
    get_trace: Callable[[CrossRunIntervention], Trace] | None = None,
) -> tuple[Intervention, ...]:
    """Return a run's interventions with the values of their patches.

    Args:
        config: of the run's model.
        vocabulary: the texts of its tokens; None: their ids stand for them.
        get_trace: returns the trace of the source run if the intervention does not have it.

    Raises:
        UserError: there is no source run, or its value does not fit.
    """

    def resolve(intervention: Intervention) -> Intervention:
        if not isinstance(intervention, CrossRunIntervention) or isinstance(intervention.source, PatchValues):
            return intervention
        if intervention.source is None:
            raise UserError(no_source_message())
        prompt = tuple(token_ids) if intervention.prompt is None else intervention.prompt
        if tuple(token_ids[: len(prompt)]) != prompt:
            raise UserError(source_too_short_message())
        source_trace = (
            intervention.source if isinstance(intervention.source, Trace) else get_trace and get_trace(intervention)
        )
        if not isinstance(source_trace, Trace):
            raise UserError(
                _("{kind!r} takes the trace of another run, as capture() gives it", kind=intervention.operation)
            )
        texts = vocabulary or (source_trace.vocabulary if len(source_trace.vocabulary) == config.vocab_size else None)
        tokens = tuple(texts[token_id] if texts else str(token_id) for token_id in prompt)
        return replace(intervention, source=read_patch_values(intervention, config, prompt, tokens, source_trace))

    return tuple(map(resolve, interventions))


def read_patch_values(
    patch: CrossRunIntervention, config: ModelConfig, prompt: tuple[int, ...], tokens: tuple[str, ...], source: Trace
) -> PatchValues:
    """Return the values that a patch takes from the source run for a prompt; raises as `align_source_run` does."""
    alignment = align_source_run(patch, config, tokens, source)
    value = source[patch.tap]
    if isinstance(patch, PatchMean):
        mean = value.mean(axis=-2, keepdims=True, dtype=np.float64).astype(np.float32)
        return PatchValues(np.repeat(mean, len(prompt), axis=-2), prompt)
    return align_values(alignment.partners, value, prompt)


def align_values(partners: Partners, value: np.ndarray, prompt: tuple[int, ...]) -> PatchValues:
    """Return the source run's value (…, T, N) at the aligned position of each prompt position.

    NaN at positions without an aligned one.
    """
    return PatchValues(take_or_nan(value, partners, -2).astype(np.float32), prompt)


def align_source_run(
    patch: CrossRunIntervention, config: ModelConfig, tokens: tuple[str, ...], source: Trace
) -> Alignment:
    """Return the alignment of a prompt's tokens with those of the source run.

    Raises:
        UserError: the source run has no such value, one of another shape, or none at the positions.
    """
    if patch.tap not in source:
        raise UserError(_("the other run’s model has no value {tap}: take another value", tap=patch.tap))
    sizes, other_sizes = (_vector_sizes(model_config, patch.tap) for model_config in (config, source.config))
    if sizes != other_sizes:
        message = _(
            "{tap} has {others} dimensions per token in the other run’s model and {own} in this one: choose an "
            "activation of equal size, or compare two runs of one model"
        )
        raise UserError(message.format(tap=patch.tap, own=_format_sizes(sizes), others=_format_sizes(other_sizes)))
    alignment = align_tokens(tokens, source.tokens, patch.pins)
    if isinstance(patch, PatchMean):
        return alignment
    if alignment.kind == "none":
        raise UserError(_("no token of the other run is aligned with one of this run: align two tokens first"))
    if patch.tap.endswith(BY_QUERY_AND_KEY) and not (alignment.is_identity and alignment.length == len(tokens)):
        raise UserError(whole_patterns_only_message(len(tokens), alignment.length))
    _check_positions(patch, alignment)
    return alignment


def _check_positions(patch: CrossRunIntervention, alignment: Alignment):
    """Raise UserError if a position of the patch has no aligned position."""
    positions = [
        position
        for position in range(len(alignment.partners))
        if patch.positions is None or position in patch.positions
    ]
    if not positions:
        message = _("position {at} comes after the prompt, which has {count} tokens: name one of those")
        raise UserError(message.format(at=patch.positions.max_position, count=len(alignment.partners)))
    unaligned = [position for position in positions if alignment.partners[position] is None]
    is_explicit = patch.positions is not None and not patch.positions.is_open
    if unaligned and (is_explicit or len(unaligned) == len(positions)):
        message = _(
            "the token at position {at} has no partner in the other run: put two together, or take another token"
        )
        raise UserError(message.format(at=unaligned[0]))


def _vector_sizes(config: ModelConfig, tap: str) -> tuple[int, ...]:
    """Return the size of a value's vector at a token: (number of heads, head size), or its width."""
    axis = index_axis(tap)
    by_head = axis in (HEADS, KV_HEADS) and not tap.endswith(BY_QUERY_AND_KEY)
    return (axis.size(config), config.d_head) if by_head else (axis.size(config),)


def _format_sizes(sizes: tuple[int, ...]) -> str:
    return " × ".join(map(str, sizes))


def whole_patterns_only_message(length: int, other_length: int) -> str:
    """Return the error message for a patched pattern between prompts of different length."""
    return _(
        "an attention pattern can only be patched between prompts of equal length, and these have {own} and {others} "
        "tokens: patch z, q or k of the head instead",
        own=length,
        others=other_length,
    )
