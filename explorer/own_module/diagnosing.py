"""Where a module parts from the reference."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from explorer.language import N_, _
from explorer.own_module.block import Block
from explorer.own_module.described import configs, with_context
from explorer.own_module.formulas import reference as formulas_of
from explorer.own_module.from_module import TOLERANCE, check_ids, difference
from explorer.own_module.names import Match, Table, match
from explorer.own_module.observing import Seen, observe
from explorer.own_module.off import Off
from explorer.own_module.preparing import completed, drawn, probe, some_ids
from explorer.own_module.running import logits_of, own_copy
from explorer.own_module.slips.slip import Slip
from explorer.own_module.steps import PROBE, Beginning, End
from explorer.own_module.walking import Walk
from explorer.own_module.weights import with_weights
from explorer.own_module.wiring import check_walked
from explorer.own_module.words import told
from explorer.state.errors import UserError
from explorer.tracing.capture import outputs_of
from explorer.tracing.diagnosis import Cause, Difference, Report, Row
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

HEAD_TAPS = "q", "k", "v", "z"


class Diagnosis(Report):
    """A report that says itself in words."""

    def __str__(self) -> str:
        return told(self)


def diagnose(
    module: nn.Module,
    reference: TransformerLM | ModelConfig | None = None,
    names: Table | None = None,
    *,
    example_ids: Sequence[int] | None = None,
) -> Diagnosis:
    """Give the reference the module's weights, let both read the same tokens, and walk the values in order: each is
    compared with what the reference makes of the module's own values before it, so that a slip shows where it is, and
    none hides another. What differs is explained by slips that are tried: those of the reference's computation with
    which it gives what the module has.

    The module is neither changed nor kept. Gains and biases that are all 1 or 0, as before training, are drawn at
    random in the copy, since what is left out would not show.

    Args:
        reference: what the module should be: a model, of which the config alone counts, or its config; None: what its
            weights and attributes say, see `from_module`.
        names: the module's names -> ours, for what no known spelling has.
        example_ids: tokens that are read; None: 17 drawn at random.

    Raises:
        UserError: the module fails, has no weights, or has others than the reference.
    """
    began = time.monotonic()
    student = own_copy(module)
    config = getattr(reference, "config", reference)
    found, notes = completed(match(student, names), config.norm_placement if config else "pre")
    notes += drawn(found)
    ids = list(example_ids) if example_ids is not None else some_ids(found, config)
    if config is None:
        with one_thread():
            config = likeliest(student, found, ids)
    config = with_context(config, len(ids) + 1)
    check_walked(config)
    check_ids(ids, found)
    lm = with_weights(config, found)
    seen = observe(student, found, ids, config.vocab_size)
    probe(student, found, seen, config)
    with one_thread():
        report = walked(lm, seen)
    if any(each.cause is None for each in report.differences):
        report = with_randomness(report, seen, observe(student, found, ids, config.vocab_size))
    notes.append(held_against(config))
    name = type(module).__name__
    return replace(report, seconds=time.monotonic() - began, module=name, spelling=found.spelling, notes=tuple(notes))


def config_of(module: nn.Module, names: Table | None = None, given: Mapping[str, Any] | None = None) -> ModelConfig:
    """What a module was to be, as far as its weights and attributes say; errors are those of `diagnose`.

    Args:
        given: fields of the config that are known.
    """
    student = own_copy(module)
    found, _notes = completed(match(student, names))
    with one_thread():
        return likeliest(student, found, some_ids(found, None), given)


def likeliest(
    student: nn.Module, found: Match, ids: Sequence[int], given: Mapping[str, Any] | None = None
) -> ModelConfig:
    """What the module was to be: of the configs that its weights and attributes tell of the first. Where they do not
    say how many heads there are, or names are nobody's, that of several with which the logits are equal, or else the
    fewest differences are left."""
    every = list(configs(student, found, given))
    if not every:
        raise UserError(_("Nothing says how many heads the module has: give config= (--config num_heads=…)."))
    first = every[0]

    def without_heads(config: ModelConfig) -> dict[str, Any]:
        return vars(config) | dict.fromkeys(("num_heads", "num_kv_heads", "head_dim"))

    tried = [
        config
        for config in every
        if (found.spelling == "order" and config.position != "none") or without_heads(config) == without_heads(first)
    ]
    if len(tried) == 1:
        return first
    known = logits_of(student, ids, first.vocab_size)
    lms = {config: with_weights(with_context(config, len(ids)), found) for config in tried}
    apart = {config: difference(lm, ids, known)[0] for config, lm in lms.items()}
    best = min(apart, key=apart.get)
    if apart[best] <= TOLERANCE * known.abs().max():
        return best
    seen = observe(student, found, ids, first.vocab_size)
    return min(tried, key=lambda config: _left_in_first_block(lms[config], seen))


def held_against(config: ModelConfig) -> str:
    """What the reference is, where no weight's shape tells it."""
    names = ["norm", "norm_placement", "position", "ffn", "num_heads"]
    names[3:3] = ["rope_layout"] if config.position == "rope" else []
    settings = ", ".join(f"{name}={getattr(config, name)}" for name in names)
    return _("The reference has {settings}.", settings=settings)


@torch.no_grad()
def _left_in_first_block(lm: TransformerLM, seen: Seen) -> tuple[int, int]:
    """How many differences up to the end of the first block nothing explains, and how many there are."""
    config, weights, formulas = lm.config, lm.state_dict(), formulas_of(lm.config)
    walks = [Walk(Beginning(config, seen, weights), formulas)]
    entry = walks[0].scope.value("embed", walks[0].formulas)
    block = Block(config, seen, weights, 0, entry)
    walks.append(Walk(block, formulas, hopeless=set(block.taps)))
    differences = [difference for walk in walks for difference, _slips in walk.differences]
    return sum(each.cause is None for each in differences), len(differences)


@contextmanager
def one_thread() -> Iterator[None]:
    """What is worked out again and again for a few tokens is too small to be shared: threads would wait for each other
    ten times as long as they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@torch.no_grad()
def walked(lm: TransformerLM, seen: Seen) -> Diagnosis:
    """The differences of all scopes in order, those of the same cause together, and every value."""
    config, weights, formulas = lm.config, lm.state_dict(), formulas_of(lm.config)
    own, _dtype = outputs_of(lm, seen.token_ids, (), lm.taps)
    walks = [Walk(Beginning(config, seen, weights), formulas)]
    entry = walks[0].scope.value("embed", walks[0].formulas)
    known: list[Slip] = []
    hopeless: set[str] = set()
    usual = list(range(config.num_layers))
    order = list(dict.fromkeys(seen.order)) or usual
    for layer in order:
        block = Block(config, seen, weights, layer, entry)
        walks.append(Walk(block, formulas, known, hopeless))
        entry = block.value(block.leaves, walks[-1].formulas)
    apart = Off.of(seen.values["logits"], torch.tensor(own["logits"]))
    is_reordered = apart.differs and (seen.order or usual) != usual
    if is_reordered:  # blocks that run twice are seen the first time
        entry = seen.values.get("final_norm.in", entry)
    walks.append(Walk(End(config, seen, weights, entry), formulas, known))
    by_start = {walk.scope.start: rows_of(walk, own) for walk in walks[:-1]}
    rows = [*by_start[""]]
    for start in (f"blocks.{layer}." for layer in usual):
        unseen = (tap for tap in own if tap.startswith(start) and tap.removeprefix(start) in walks[1].scope.taps)
        rows += by_start.get(start) or [Row(tap, math.nan, math.nan, math.nan) for tap in unseen]
    rows += rows_of(walks[-1], own)
    differences = together([difference for walk in walks for difference, _slips in walk.differences])
    if is_reordered:
        differences.insert(0, reordered(seen.order, usual, apart))
    return Diagnosis(tuple(differences), tuple(rows), apart.largest, apart.scale, seen.token_ids, 0.0)


def with_randomness(report: Diagnosis, seen: Seen, again: Seen) -> Diagnosis:
    """The report with its cause for what is not explained where the module gives something else in a second run."""
    first = next(each.tap for each in report.differences if each.cause is None)
    if torch.equal(seen.values["logits"].nan_to_num(), again.values["logits"].nan_to_num()):
        return report
    words = N_("it differs from run to run: dropout, or something else that is random, is on")
    cause = Cause(("random",), (words,), ({},))
    differences = [
        replace(each, cause=cause) if each.cause is None and without_layer(each.tap) == without_layer(first) else each
        for each in report.differences
    ]
    return replace(report, differences=tuple(together(differences)))


def without_layer(tap: str) -> str:
    return tap.split(".", 2)[-1] if tap.startswith("blocks.") else tap


def reordered(order: Sequence[int], usual: Sequence[int], apart: Off) -> Difference:
    """That blocks run in another order than that of their names, some several times or never."""
    first = next(i for i in range(len(usual) + 1) if order[i : i + 1] != usual[i : i + 1])
    tap = f"blocks.{min(first, len(usual) - 1)}.resid_pre"
    orders = {"order": ", ".join(map(str, order)), "usual": ", ".join(map(str, usual))}
    cause = Cause(("order_of_blocks",), (N_("the blocks run in the order {order}, not {usual}"),), (orders,))
    return Difference(tap, tap, apart.largest, apart.scale, tuple(range(len(apart.by_position))), cause)


def rows_of(walk: Walk, own: dict[str, np.ndarray]):
    scope = walk.scope
    for tap in (tap for tap in scope.taps if not tap.endswith(PROBE)):
        name = f"{scope.start}{tap}"
        if tap not in scope.seen:
            yield Row(name, float("nan"), float("nan"), float("nan"))
            continue
        off, reference = walk.first_off[tap], torch.tensor(own[name])
        if tap.split(".")[-1] in HEAD_TAPS and reference.ndim == 3:
            reference = reference.transpose(0, 1).flatten(-2)
        run = Off.of(scope.seen[tap], reference)
        share = run.largest / run.scale if run.scale else run.largest
        yield Row(name, off.times, off.largest, share, tuple(off.by_position.tolist()))


def together(differences: Sequence[Difference]) -> list[Difference]:
    """Those of the same cause as one, at the first place."""
    found: list[Difference] = []
    for each in differences:
        same = [i for i, one in enumerate(found) if each.cause and one.cause and one.cause == each.cause]
        if same:
            found[same[0]] = replace(found[same[0]], also=(*found[same[0]].also, each.tap))
        else:
            found.append(each)
    return found
