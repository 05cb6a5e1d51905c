"""Find where a module differs from the reference."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from explorer.diagnosis.block_dataflow import check_supported
from explorer.diagnosis.block_segment import BlockSegment
from explorer.diagnosis.bugs.bug import KnownBug
from explorer.diagnosis.build_model import build_with_weights
from explorer.diagnosis.candidate_configs import candidate_configs, with_context
from explorer.diagnosis.deviation import Deviation
from explorer.diagnosis.from_module import TOLERANCE, check_ids, logit_error
from explorer.diagnosis.match_weights import Table, WeightMatch, match_weights
from explorer.diagnosis.prepare_diagnosis import add_missing_gains, draw_random_ids, probe_norms, randomise_untrained
from explorer.diagnosis.record_values import RecordedValues, record_values
from explorer.diagnosis.reference_formulas import reference_formulas
from explorer.diagnosis.report_text import format_report
from explorer.diagnosis.run_module import copy_module, run_module
from explorer.diagnosis.segment_diagnosis import SegmentDiagnosis
from explorer.diagnosis.segments import PROBE, EmbeddingSegment, UnembeddingSegment
from explorer.errors import UserError
from explorer.tracing.capture import module_outputs
from explorer.tracing.diagnosis_report import BugExplanation, DiagnosisReport, Difference, TapComparison
from explorer.translations import N_, _
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

HEAD_TAPS = "q", "k", "v", "z"


class Diagnosis(DiagnosisReport):
    """A report whose string is its text."""

    def __str__(self) -> str:
        return format_report(self)


def diagnose(
    module: nn.Module,
    reference: TransformerLM | ModelConfig | None = None,
    names: Table | None = None,
    *,
    example_ids: Sequence[int] | None = None,
) -> Diagnosis:
    """Compare a module with the reference that has its weights, and explain the differences by known bugs.

    Both read the same tokens. Each value of the module is compared with what the reference computes from the
    module's own preceding values, so that no bug hides another. A bug explains a difference if the reference with
    that bug reproduces the module's value.

    The module is not changed. Gains and biases that are all 1 or 0, as before training, are randomised in a copy,
    since their omission would be invisible.

    Args:
        reference: a model, of which only the config is used, or a config; None: inferred from weights and
            attributes, see `from_module`.
        names: the module's names -> ours, for those that no known table has.
        example_ids: tokens to read; None: 17 random ones.

    Raises:
        UserError: the module fails, has no weights, or has others than the reference.
    """
    start = time.monotonic()
    student = copy_module(module)
    config = getattr(reference, "config", reference)
    match, notes = add_missing_gains(match_weights(student, names), config.norm_placement if config else "pre")
    notes += randomise_untrained(match)
    ids = list(example_ids) if example_ids is not None else draw_random_ids(match, config)
    if config is None:
        with single_thread():
            config = choose_config(student, match, ids)
    config = with_context(config, len(ids) + 1)
    check_supported(config)
    check_ids(ids, match)
    lm = build_with_weights(config, match)
    recorded = record_values(student, match, ids, config.vocab_size)
    probe_norms(student, match, recorded, config)
    with single_thread():
        report = diagnose_segments(lm, recorded)
    if any(difference.cause is None for difference in report.differences):
        report = add_randomness_cause(report, recorded, record_values(student, match, ids, config.vocab_size))
    notes.append(describe_reference(config))
    name = type(module).__name__
    return replace(report, seconds=time.monotonic() - start, module=name, spelling=match.name_table, notes=tuple(notes))


def infer_config(
    module: nn.Module, names: Table | None = None, known_fields: Mapping[str, Any] | None = None
) -> ModelConfig:
    """Infer a module's config from its weights and attributes. Raises what `diagnose` raises.

    Args:
        known_fields: fields of the config that are known.
    """
    student = copy_module(module)
    match, _notes = add_missing_gains(match_weights(student, names))
    with single_thread():
        return choose_config(student, match, draw_random_ids(match, None), known_fields)


def choose_config(
    student: nn.Module, match: WeightMatch, ids: Sequence[int], known_fields: Mapping[str, Any] | None = None
) -> ModelConfig:
    """Return the likeliest config of a module: the first candidate, if its weights and attributes determine one.

    If the number of heads is unknown, or the names are in no table, choose the candidate with equal logits, or else
    the one with the fewest unexplained differences.
    """
    candidates = list(candidate_configs(student, match, known_fields))
    if not candidates:
        raise UserError(
            _("The module’s number of heads cannot be inferred: set it with config= (--config num_heads=…).")
        )
    first = candidates[0]

    def without_heads(config: ModelConfig) -> dict[str, Any]:
        return vars(config) | dict.fromkeys(("num_heads", "num_kv_heads", "head_dim"))

    tried = [
        config
        for config in candidates
        if (match.name_table == "order" and config.position != "none") or without_heads(config) == without_heads(first)
    ]
    if len(tried) == 1:
        return first
    logits = run_module(student, ids, first.vocab_size)
    lms = {config: build_with_weights(with_context(config, len(ids)), match) for config in tried}
    errors = {config: logit_error(lm, ids, logits)[0] for config, lm in lms.items()}
    best = min(errors, key=errors.get)
    if errors[best] <= TOLERANCE * logits.abs().max():
        return best
    recorded = record_values(student, match, ids, first.vocab_size)
    return min(tried, key=lambda config: _count_unexplained(lms[config], recorded))


def describe_reference(config: ModelConfig) -> str:
    """Describe the reference's settings that the shapes of the weights do not determine."""
    names = ["norm", "norm_placement", "position", "ffn", "num_heads"]
    names[3:3] = ["rope_layout"] if config.position == "rope" else []
    settings = ", ".join(f"{name}={getattr(config, name)}" for name in names)
    return _("The reference has {settings}.", settings=settings)


@torch.no_grad()
def _count_unexplained(lm: TransformerLM, recorded: RecordedValues) -> tuple[int, int]:
    """Return the numbers of unexplained and of all differences up to the end of the first block."""
    config, weights, formulas = lm.config, lm.state_dict(), reference_formulas(lm.config)
    walks = [SegmentDiagnosis(EmbeddingSegment(config, recorded, weights), formulas)]
    entry = walks[0].scope.value("embed", walks[0].formulas)
    block = BlockSegment(config, recorded, weights, 0, entry)
    walks.append(SegmentDiagnosis(block, formulas, exhausted_taps=set(block.taps)))
    differences = [difference for walk in walks for difference, _slips in walk.differences]
    return sum(unexplained.cause is None for unexplained in differences), len(differences)


@contextmanager
def single_thread() -> Iterator[None]:
    """Run PyTorch on one thread: for a few tokens, threads would wait ten times as long as they compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@torch.no_grad()
def diagnose_segments(lm: TransformerLM, recorded: RecordedValues) -> Diagnosis:
    """Diagnose all segments in order; differences with the same cause are merged, and every value has a row."""
    config, weights, formulas = lm.config, lm.state_dict(), reference_formulas(lm.config)
    reference_values, _dtype = module_outputs(lm, recorded.token_ids, (), lm.taps)
    walks = [SegmentDiagnosis(EmbeddingSegment(config, recorded, weights), formulas)]
    entry = walks[0].scope.value("embed", walks[0].formulas)
    identified_bugs: list[KnownBug] = []
    exhausted_taps: set[str] = set()
    usual = list(range(config.num_layers))
    order = list(dict.fromkeys(recorded.order)) or usual
    for layer in order:
        block = BlockSegment(config, recorded, weights, layer, entry)
        walks.append(SegmentDiagnosis(block, formulas, identified_bugs, exhausted_taps))
        entry = block.value(block.output_tap, walks[-1].formulas)
    logits_deviation = Deviation.between(recorded.values["logits"], torch.tensor(reference_values["logits"]))
    is_reordered = logits_deviation.differs and (recorded.order or usual) != usual
    if is_reordered:  # of blocks that run twice only the first run is recorded
        entry = recorded.values.get("final_norm.in", entry)
    walks.append(SegmentDiagnosis(UnembeddingSegment(config, recorded, weights, entry), formulas, identified_bugs))
    rows_by_start = {walk.scope.start: tap_comparisons(walk, reference_values) for walk in walks[:-1]}
    rows = [*rows_by_start[""]]
    for start in (f"blocks.{layer}." for layer in usual):
        unseen = (
            tap for tap in reference_values if tap.startswith(start) and tap.removeprefix(start) in walks[1].scope.taps
        )
        rows += rows_by_start.get(start) or [TapComparison(tap, math.nan, math.nan, math.nan) for tap in unseen]
    rows += tap_comparisons(walks[-1], reference_values)
    differences = merge_same_cause([difference for walk in walks for difference, _slips in walk.differences])
    if is_reordered:
        differences.insert(0, block_order_difference(recorded.order, usual, logits_deviation))
    return Diagnosis(
        tuple(differences), tuple(rows), logits_deviation.largest, logits_deviation.scale, recorded.token_ids, 0.0
    )


def add_randomness_cause(report: Diagnosis, recorded: RecordedValues, second_run: RecordedValues) -> Diagnosis:
    """Return the report with randomness as the cause of unexplained differences if a second run's logits differ."""
    first = next(difference.tap for difference in report.differences if difference.cause is None)
    if torch.equal(recorded.values["logits"].nan_to_num(), second_run.values["logits"].nan_to_num()):
        return report
    text = N_("it differs from run to run: dropout, or something else that is random, is on")
    cause = BugExplanation(("random",), (text,), ({},))
    differences = [
        replace(difference, cause=cause)
        if difference.cause is None and without_layer(difference.tap) == without_layer(first)
        else difference
        for difference in report.differences
    ]
    return replace(report, differences=tuple(merge_same_cause(differences)))


def without_layer(tap: str) -> str:
    """Return a tap's name without its layer."""
    return tap.split(".", 2)[-1] if tap.startswith("blocks.") else tap


def block_order_difference(order: Sequence[int], expected_order: Sequence[int], deviation: Deviation) -> Difference:
    """Return the difference that the blocks run in another order than their names, some repeatedly or never."""
    first = next(i for i in range(len(expected_order) + 1) if order[i : i + 1] != expected_order[i : i + 1])
    tap = f"blocks.{min(first, len(expected_order) - 1)}.resid_pre"
    orders = {"order": ", ".join(map(str, order)), "usual": ", ".join(map(str, expected_order))}
    cause = BugExplanation(("order_of_blocks",), (N_("the blocks run in the order {order}, not {usual}"),), (orders,))
    return Difference(tap, tap, deviation.largest, deviation.scale, tuple(range(len(deviation.by_position))), cause)


def tap_comparisons(walk: SegmentDiagnosis, reference_values: dict[str, np.ndarray]):
    """Yield the comparison of each tap of a segment with the reference model's value."""
    scope = walk.scope
    for tap in (tap for tap in scope.taps if not tap.endswith(PROBE)):
        name = f"{scope.start}{tap}"
        if tap not in scope.tap_values:
            yield TapComparison(name, float("nan"), float("nan"), float("nan"))
            continue
        deviation, reference = walk.first_deviations[tap], torch.tensor(reference_values[name])
        if tap.split(".")[-1] in HEAD_TAPS and reference.ndim == 3:
            reference = reference.transpose(0, 1).flatten(-2)
        run = Deviation.between(scope.tap_values[tap], reference)
        share = run.largest / run.scale if run.scale else run.largest
        yield TapComparison(
            name, deviation.ratio_to_tolerance, deviation.largest, share, tuple(deviation.by_position.tolist())
        )


def merge_same_cause(differences: Sequence[Difference]) -> list[Difference]:
    """Merge differences with the same cause, at the first one's index."""
    merged: list[Difference] = []
    for difference in differences:
        same = [
            i for i, other in enumerate(merged) if difference.cause and other.cause and other.cause == difference.cause
        ]
        if same:
            merged[same[0]] = replace(merged[same[0]], also=(*merged[same[0]].also, difference.tap))
        else:
            merged.append(difference)
    return merged
