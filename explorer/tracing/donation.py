"""What a run takes from another: worked out once, before it runs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.language import _
from explorer.state.alignment import Alignment, Partners, aligned
from explorer.state.errors import UserError
from explorer.state.interventions import FromOther, Intervention, PatchMean, axis
from explorer.state.interventions.axes import HEADS, KV_HEADS
from explorer.tracing.trace import Trace
from model.config import ModelConfig

BY_QUERY_AND_KEY = "attn.pattern"  # the end of names of values whose last axis counts tokens, too


@dataclass(frozen=True, eq=False)
class Donation:
    """What an intervention puts in.

    Attributes:
        values: (…, P, N) float32 for the first P positions; NaN at those that are left as they are.
        prompt: ids of the P tokens that it is meant for.
    """

    values: np.ndarray
    prompt: tuple[int, ...]

    def rows(self, start: int, length: int, width: int) -> np.ndarray:
        """(…, length, width) of it from a position on; NaN after its last, and of weights 0 for keys after those."""
        found = np.full((*self.values.shape[:-2], length, width), np.nan, dtype=np.float32)
        some = self.values[..., start : start + length, :width]
        found[..., : some.shape[-2], :] = 0
        found[..., : some.shape[-2], : some.shape[-1]] = some
        return found

    def is_put_at(self, positions: np.ndarray) -> np.ndarray:
        """Of positions, in an array of any shape, whether anything is put there."""
        filled = np.isfinite(self.values).all(axis=-1).reshape(-1, self.values.shape[-2]).all(axis=0)  # (P,)
        within = positions < len(filled)
        return within & filled[np.where(within, positions, 0)]

    def check(self, token_ids: Sequence[int]):
        """UserError where a run does not begin with the tokens that it is meant for."""
        count = min(len(token_ids), len(self.prompt))
        if tuple(token_ids[:count]) != self.prompt[:count]:
            raise UserError(outgrown())


def ready(
    edits: Iterable[Intervention],
    config: ModelConfig,
    token_ids: Sequence[int],
    vocabulary: Sequence[str] | None,
    trace_of: Callable[[FromOther], Trace] | None = None,
) -> tuple[Intervention, ...]:
    """A run's interventions with what they take from others worked out.

    Args:
        config: of the run's model.
        vocabulary: the texts of its tokens; None: they are told by their ids.
        trace_of: the other run, where its trace is not given with the intervention.

    Raises:
        UserError: there is no such run, or nothing of it can stand in the place of the value.
    """

    def made(edit: Intervention) -> Intervention:
        if not isinstance(edit, FromOther) or isinstance(edit.source, Donation):
            return edit
        if edit.source is None:
            raise UserError(no_other())
        prompt = tuple(token_ids) if edit.prompt is None else edit.prompt
        if tuple(token_ids[: len(prompt)]) != prompt:
            raise UserError(outgrown())
        donor = edit.source if isinstance(edit.source, Trace) else trace_of and trace_of(edit)
        if not isinstance(donor, Trace):
            raise UserError(_("{kind!r} takes the trace of another run, as capture() gives it", kind=edit.operation))
        texts = vocabulary or (donor.vocabulary if len(donor.vocabulary) == config.vocab_size else None)
        tokens = tuple(texts[token_id] if texts else str(token_id) for token_id in prompt)
        return replace(edit, source=donation(edit, config, prompt, tokens, donor))

    return tuple(map(made, edits))


def donation(
    edit: FromOther, config: ModelConfig, prompt: tuple[int, ...], tokens: tuple[str, ...], donor: Trace
) -> Donation:
    """What an edit takes of another run for a prompt; errors are those of `check_donor`."""
    alignment = check_donor(edit, config, tokens, donor)
    value = donor[edit.tap]
    if isinstance(edit, PatchMean):
        mean = value.mean(axis=-2, keepdims=True, dtype=np.float64).astype(np.float32)
        return Donation(np.repeat(mean, len(prompt), axis=-2), prompt)
    return taken_by(alignment.partners, value, prompt)


def taken_by(partners: Partners, value: np.ndarray, prompt: tuple[int, ...]) -> Donation:
    """Of another run's value (…, T, N) what a prompt's positions take that have partners there."""
    places = np.array([-1 if partner is None else partner for partner in partners])
    return Donation(np.where((places < 0)[:, None], np.nan, value[..., places, :]).astype(np.float32), prompt)


def check_donor(edit: FromOther, config: ModelConfig, tokens: tuple[str, ...], donor: Trace) -> Alignment:
    """How the tokens of a prompt stand to another run's.

    Raises:
        UserError: the other run has no such value, one of another shape, or none at the positions.
    """
    if edit.tap not in donor:
        raise UserError(_("the other run’s model has no value {tap}: take another value", tap=edit.tap))
    own, others = (_sizes(of, edit.tap) for of in (config, donor.config))
    if own != others:
        told = _(
            "{tap} of the other run’s model has {others} numbers a token, and this model’s has {own}: take a value of "
            "one size, or compare two runs of one model"
        )
        raise UserError(told.format(tap=edit.tap, own=_times(own), others=_times(others)))
    alignment = aligned(tokens, donor.tokens, edit.pins)
    if isinstance(edit, PatchMean):
        return alignment
    if alignment.kind == "none":
        raise UserError(_("no token of the other run stands for one of this: put two tokens together first"))
    if edit.tap.endswith(BY_QUERY_AND_KEY) and not (alignment.is_identity and alignment.length == len(tokens)):
        raise UserError(whole_patterns_alone(len(tokens), alignment.length))
    _check_positions(edit, alignment)
    return alignment


def _check_positions(edit: FromOther, alignment: Alignment):
    """UserError where a position that is named has no partner."""
    chosen = [at for at in range(len(alignment.partners)) if edit.positions is None or at in edit.positions]
    if not chosen:
        told = _("position {at} comes after the prompt, which has {count} tokens: name one of those")
        raise UserError(told.format(at=edit.positions.furthest, count=len(alignment.partners)))
    lone = [at for at in chosen if alignment.partners[at] is None]
    named = edit.positions is not None and not edit.positions.is_open
    if lone and (named or len(lone) == len(chosen)):
        told = _("the token at position {at} has no partner in the other run: put two together, or take another token")
        raise UserError(told.format(at=lone[0]))


def _sizes(config: ModelConfig, tap: str) -> tuple[int, ...]:
    """How many numbers a value has a token, and of heads how many each."""
    parts = axis(tap)
    by_head = parts in (HEADS, KV_HEADS) and not tap.endswith(BY_QUERY_AND_KEY)
    return (parts.size(config), config.d_head) if by_head else (parts.size(config),)


def _times(sizes: tuple[int, ...]) -> str:
    return " × ".join(map(str, sizes))


def whole_patterns_alone(own: int, others: int) -> str:
    return _(
        "a pattern goes over only between prompts of as many tokens, position by position, and these have {own} "
        "and {others}: take z, q or k of the head",
        own=own,
        others=others,
    )


def no_other() -> str:
    return _("a change takes values of a second run, and there is none: compare with one, or take the change back")


def outgrown() -> str:
    return _(
        "the text has outgrown what the model sees at once, so that tokens which took the other run’s values are gone: "
        "take these changes back, or shorten the text"
    )
