"""Find where a module differs from the reference, segment by segment, and why."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from explorer.diagnosis.bug_search import INTERMEDIATE_TAPS, BugHypothesis, BugSearch, as_singletons
from explorer.diagnosis.bugs import KNOWN_BUGS
from explorer.diagnosis.bugs.norms_and_feed_forward import find_reduced_precision
from explorer.diagnosis.match_weights import MatchedModule, Table, WeightMatch, match_weights
from explorer.diagnosis.model_segments import PROBE, BlockSegment, Deviation, EmbeddingSegment, UnembeddingSegment
from explorer.diagnosis.module_settings import candidate_configs, with_context
from explorer.diagnosis.record_values import RecordedValues, record_values
from explorer.diagnosis.reference_formulas import (
    DATAFLOWS,
    NORMS,
    KnownBug,
    ModelFormulas,
    check_supported,
    reference_formulas,
)
from explorer.diagnosis.report_text import format_report
from explorer.diagnosis.run_module import TOLERANCE, build_with_weights, check_ids, copy_module, logit_error, run_module
from explorer.errors import UserError
from explorer.tracing.capture import module_outputs
from explorer.tracing.diagnosis_report import BugExplanation, DiagnosisReport, Difference, TapComparison
from explorer.translations import N_, _
from model.config import ModelConfig
from model.transformer_lm import TransformerLM

NUM_EXAMPLE_TOKENS, SEED = 17, 0
PROBE_MEAN_SQUARES = (1e-9, 1e-13, 1e6)  # mean squares: ε dominates, vanishes, or matters beside the reciprocal root


def draw_random_ids(match: WeightMatch, config: ModelConfig | None) -> list[int]:
    """Return random token ids that fit the vocabulary and the context."""
    size = len(match.matched_modules["token_embedding"].weight) if "token_embedding" in match.matched_modules else 1
    length = min(NUM_EXAMPLE_TOKENS, config.context_length if config else NUM_EXAMPLE_TOKENS)
    if "position_embedding" in match.matched_modules:
        length = min(length, len(match.matched_modules["position_embedding"].weight))
    return torch.randint(size, (length,), generator=torch.Generator().manual_seed(SEED)).tolist()


def randomise_untrained(match: WeightMatch) -> list[str]:
    """Randomise in place gains that are all 1 and biases that are all 0; return a note about it."""
    generator, gains, biases = torch.Generator().manual_seed(SEED), 0, 0
    for name, matched in match.matched_modules.items():
        if "norm" in name and bool((matched.weight == 1).all()):
            matched.weight.copy_(0.5 + torch.rand(matched.weight.shape, generator=generator))
            gains += 1
        # joined biases are copies of the module's
        if matched.bias is not None and not matched.heads and bool((matched.bias == 0).all()):
            matched.bias.copy_(torch.randn(matched.bias.shape, generator=generator) / 10)
            biases += 1
    if not gains + biases:
        return []
    return [
        _(
            "{gains} gains that were all 1 and {biases} biases that were all 0, as before training, are drawn at "
            "random in both: what is left out would not show.",
            gains=gains,
            biases=biases,
        )
    ]


def add_missing_gains(match: WeightMatch, placement: str = "pre", draws: bool = True) -> tuple[WeightMatch, list[str]]:
    """Add gains for norms that the module lacks, so that a missing norm is found as a bug; also return notes.

    Args:
        placement: of the reference's norms.
        draws: whether gains are random; else they are 1.
    """
    table = match.matched_modules.get("token_embedding")
    required = [f"blocks.{layer}.{name}" for layer in range(match.num_layers) for name in ("attn_norm", "ffn_norm")]
    required += [] if placement == "post" else ["final_norm"]
    missing = (
        [name for name in required if name not in match.matched_modules] if table and placement in DATAFLOWS else []
    )
    if not missing:
        return match, []
    generator, width = torch.Generator().manual_seed(SEED), table.weight.shape[1]
    gains = {name: 0.5 + torch.rand(width, generator=generator) if draws else torch.ones(width) for name in missing}
    matched_modules = {**match.matched_modules, **{name: MatchedModule(gain) for name, gain in gains.items()}}
    note = _(
        "The module has no weights for {count} norms of the reference, such as {name}: theirs are drawn at random.",
        count=len(missing),
        name=missing[-1],
    )
    return replace(match, matched_modules=matched_modules), [note]


@torch.no_grad()
def probe_norms(student: nn.Module, match: WeightMatch, recorded: RecordedValues, config: ModelConfig) -> None:
    """Record the norms' outputs for vectors so short that their ε matters, and for long ones."""
    for name, matched in match.matched_modules.items():
        x = recorded.values.get(f"{name}.in")
        if x is None or not matched.module or name.split(".")[-1] not in NORMS:
            continue
        size = x.square().mean().sqrt()
        if not torch.isfinite(size) or size == 0:
            continue
        short = torch.cat(
            [x * (mean_square**0.5 / size) for mean_square in (config.norm_eps, *PROBE_MEAN_SQUARES)]
        )  # (4 T, D)
        try:
            output = student.get_submodule(matched.module)(short[None])
        except Exception:  # then there is no probe; the run itself succeeded
            continue
        if isinstance(output, Tensor) and output.numel() == short.numel():
            recorded.values[f"{name}.{PROBE}.in"] = short
            recorded.values[f"{name}.{PROBE}.out"] = output.detach().float().reshape(short.shape)


HIDDEN_TAPS = {  # intermediate taps that have no submodule -> under the tap at which their bugs are visible
    "attn.z": INTERMEDIATE_TAPS[3:8],
    "ffn.hidden": ("ffn.gate", "ffn.hidden"),
}


@dataclass
class SegmentDiagnosis(BugSearch):
    """The diagnosis of one segment: `differences` in order, and the `formulas` with the bugs identified."""

    def __post_init__(self):
        scope, formulas = self.scope, self.formulas
        scope.choose_values(formulas)
        self.first_deviations = {tap: self.deviation(tap, formulas) for tap in scope.taps if tap in scope.tap_values}
        self.differences = list(self._explain_differences())

    def _explain_differences(self) -> Iterator[Difference]:
        skipped: set[str] = set()
        while wrong := [tap for tap in self.differing_taps(self.formulas) if tap not in skipped]:
            tap, deviation = wrong[0], self.deviation(wrong[0], self.formulas)
            best = self.best_hypotheses(tap, wrong)
            if not best and (bugs := self._find_reduced_precision(tap)):
                skipped |= {tap, f"{tap}.{PROBE}"}
                for bug in bugs:
                    yield self._difference(tap, deviation, (bug,))
                continue
            if not best:
                skipped |= {tap, f"{tap}.{PROBE}"}
                yield self._difference(tap, deviation)
                continue
            self.formulas = best[0].formulas
            if f"{tap}.{PROBE}" not in wrong:  # the norm's probe is right; only its input or use differs
                skipped.add(f"{tap}.{PROBE}")
            self.identified_bugs += [
                bug for hypothesis in best for bug in hypothesis.bugs if bug not in self.identified_bugs
            ]
            for bugs in self._order_bugs(best, tap):
                yield self._difference(tap, deviation, bugs)
        yield from self._find_cancelling_bugs()

    def _order_bugs(self, best: list[BugHypothesis], tap: str) -> Iterator[tuple[KnownBug, ...]]:
        """Yield each bug of a pair by itself, in the order of their taps; or all equally good bugs together."""
        if len(best) > 1 or len(best[0].bugs) == 1:
            yield tuple(dict.fromkeys(bug for hypothesis in best for bug in hypothesis.bugs))
            return
        reach = self.candidate_taps(tap)
        for bug in sorted(
            best[0].bugs, key=lambda bug: self._tap_index(self._first_tap(bug, self.first_visible_tap(bug, reach)))
        ):
            yield (bug,)

    def _find_reduced_precision(self, tap: str) -> tuple[KnownBug, ...]:
        """Return the bug that a norm is computed in lower precision, after another of its bugs if any; () for none."""
        if tap not in NORMS:
            return ()
        norm_name = f"{self.scope.start}{tap}"
        x, gain = self.scope.recorded.values.get(f"{norm_name}.in"), self.scope.weights.get(f"{norm_name}.weight")
        if x is None or gain is None:
            return ()
        norm_bugs = [bug for bug in KNOWN_BUGS if tap in bug.visible_at and bug.applies_to(self.scope.config)]
        for other_bugs in ((), *as_singletons(norm_bugs)):
            formulas = self.formulas
            for bug in other_bugs:
                formulas = bug.change(formulas, tap)
            norm = partial(self.scope.norm, tap, formulas=formulas)
            if bug := find_reduced_precision(self.scope.tap_values[tap], norm(x), x, gain, norm):
                self.formulas = formulas
                return (*other_bugs, bug)
        return ()

    def _difference(self, tap: str, deviation: Deviation, bugs: tuple[KnownBug, ...] = ()) -> Difference:
        """Return the difference at a tap with the bugs that explain it; none do if there are none."""
        plain_tap = tap.removesuffix(f".{PROBE}")
        full_name = first_tap = f"{self.scope.start}{plain_tap}"
        cause = None
        if bugs:
            names, texts = tuple(bug.name for bug in bugs), tuple(bug.text for bug in bugs)
            cause = BugExplanation(names, texts, tuple(dict(bug.values) for bug in bugs))
            reach = self.candidate_taps(tap)
            first_taps = (self._first_tap(bug, self.first_visible_tap(bug, reach) or plain_tap) for bug in bugs)
            first_tap = min(first_taps, key=self._tap_index)
        return Difference(
            first_tap,
            full_name,
            *self._deviation_fields(deviation),
            cause,
            equal_to="" if bugs else self._last_equal_tap(tap),
            probed=self._probe_scale(tap, deviation),
        )

    def _first_tap(self, bug: KnownBug, visible_tap: str) -> str:
        """Return the full name of the first tap that a bug changes."""
        taps = {role: tap for tap, role in self.scope.roles.items()}
        first_tap = taps.get(bug.first_tap, bug.first_tap) or visible_tap
        if first_tap == "ffn.gate" and not self.scope.config.is_gated:
            first_tap = "ffn.hidden"
        return f"{self.scope.start}{first_tap}"

    def _tap_index(self, full_name: str) -> int:
        """Return the index of a tap in its segment."""
        order = [hidden_tap for tap in self.scope.taps for hidden_tap in HIDDEN_TAPS.get(tap, (tap,))]
        tap = full_name.removeprefix(self.scope.start)
        return order.index(tap) if tap in order else len(order)

    def _deviation_fields(self, deviation: Deviation) -> tuple[float, float, tuple[int, ...]]:
        positions = (deviation.by_position > 1).nonzero().flatten() % len(
            self.scope.recorded.token_ids
        )  # probes repeat the run's vectors
        return deviation.largest, deviation.scale, tuple(positions.unique().tolist())

    def _probe_scale(self, tap: str, deviation: Deviation) -> float:
        """Return how many times shorter the probe that deviates most is than the run's vectors; 0 if none."""
        if not tap.endswith(PROBE):
            return 0.0
        name = f"{self.scope.start}{tap.removesuffix(f'.{PROBE}')}"
        run, short = (self.scope.recorded.values[f"{name}.{suffix}"] for suffix in ("in", f"{PROBE}.in"))
        sizes = short.view(-1, *run.shape)
        worst = int(deviation.by_position.nan_to_num(0.0).view(len(sizes), -1).amax(-1).argmax())
        return (run.norm() / sizes[worst].norm()).item()

    def _last_equal_tap(self, tap: str) -> str:
        """Return the last intermediate value of the sublayer that the module reproduces; else the tap before."""
        recorded = self._recorded_intermediates(self.formulas, [tap])
        if intermediates := [name for name in INTERMEDIATE_TAPS if name in recorded]:
            return f"{self.scope.start}{intermediates[-1]}"
        before = [name for name in self.scope.taps[: self.scope.taps.index(tap)] if not name.endswith(PROBE)]
        return f"{self.scope.start}{before[-1]}" if before else ""

    def _find_cancelling_bugs(self) -> Iterator[Difference]:
        """Yield bugs that change no later value: rotations that affect all queries and keys alike."""
        scope = self.scope
        if (
            not isinstance(scope, BlockSegment)
            or not scope.config.has_rope(scope.layer)
            or "attn.q" not in scope.tap_values
        ):
            return
        expected = scope.attention(self.formulas)["q_rot"]
        if scope.recorded.contains(scope.layer, expected):
            return
        for bug in (bug for bug in KNOWN_BUGS if bug.first_tap == "attn.q_rot"):
            formulas = bug.change(self.formulas, "attn.z")
            alternative = scope.attention(formulas)["q_rot"]
            if scope.recorded.contains(scope.layer, alternative) and not self.has_deviation("attn.z", formulas):
                merged = [value.transpose(0, 1).flatten(-2) for value in (alternative, expected)]
                yield self._difference("attn.z", Deviation.between(*merged), (bug,))
                return

    def has_deviation(self, tap: str, formulas: ModelFormulas) -> bool:
        return tap in self.scope.tap_values and self.deviation(tap, formulas).differs


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
    differences = [difference for walk in walks for difference in walk.differences]
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
    differences = merge_same_cause([difference for walk in walks for difference in walk.differences])
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
