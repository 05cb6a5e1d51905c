"""Next-token distributions: ranks, surprisal, entropy, loss, divergences, sampling, and shading of tokens by them."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from explorer.explain import arithmetic
from explorer.explain.arithmetic import mean
from explorer.explain.derivation import Derivation, Input, get_element, read_input
from explorer.explain.notation import format_token_id, format_token_position
from explorer.explain.source_code import SourceLine
from explorer.state.generation_settings import GenerationSettings
from explorer.tracing.comparison import Comparison
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, current_locale, translate
from model.generation.sampling import SamplingStages, draw_token, sampling_distribution, sampling_stages, uniform_draw


def top_indices(values: np.ndarray, max_count: int) -> np.ndarray:
    """Return the indices of the `max_count` largest of `values` (N,), largest first.

    All indices if there are fewer. Ties by lower index; NaN after all others.
    """
    negated = -values
    candidates = np.arange(len(values))
    if 0 < max_count < len(values):
        threshold = np.partition(negated, max_count - 1)[max_count - 1]
        if not np.isnan(threshold):
            candidates = np.flatnonzero(negated <= threshold)
    return candidates[np.argsort(negated[candidates], kind="stable")[:max_count]]


def kl_divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Return D(p ‖ q) = Σ p log₂ (p / q) in bits, at least 0.

    Infinite if q is 0 at a token where p is not; NaN if an input is NaN.

    Args:
        p, q: (V,) probabilities of the same tokens (Kullback & Leibler 1951).
    """
    p, q = (np.asarray(probabilities, dtype=np.float64) for probabilities in (p, q))
    if np.isnan(p).any() or np.isnan(q).any():
        return float("nan")
    has = p > 0
    with np.errstate(divide="ignore"):
        return float(max(0.0, (p[has] * (np.log2(p[has]) - np.log2(q[has]))).sum()))


def jensen_shannon_distance(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return √(½ D(p ‖ m) + ½ D(q ‖ m)) with m = ½ (p + q), in bits (Endres & Schindelin 2003).

    0 for equal distributions, 1 for distributions with disjoint support.

    Args:
        p, q: (..., n) probabilities of the same n outcomes; the result has the leading axes.
    """
    p, q = (np.asarray(probabilities, dtype=np.float64) for probabilities in (p, q))
    mixture = (p + q) / 2

    def half_kl_divergence(distribution: np.ndarray) -> np.ndarray:
        ratio = np.divide(distribution, mixture, out=np.ones_like(distribution), where=distribution > 0)
        return np.where(np.isnan(distribution), np.nan, distribution * np.log2(ratio)).sum(-1) / 2

    return np.sqrt((half_kl_divergence(p) + half_kl_divergence(q)).clip(0, 1))


def align_to_vocabulary(values: np.ndarray, source_tokens: Sequence[str], target_tokens: Sequence[str]) -> np.ndarray:
    """Map values of the source vocabulary's tokens (V',) to the target vocabulary (V,), by token text.

    NaN for tokens whose text the source vocabulary lacks.
    """
    if source_tokens is target_tokens or source_tokens == target_tokens:
        return values
    ids = {text: token_id for token_id, text in enumerate(source_tokens)}
    indices = np.array([ids.get(text, -1) for text in target_tokens])
    return np.where(indices < 0, np.nan, np.asarray(values, dtype=float)[indices])


@dataclass(frozen=True)
class NextTokenDistribution:
    """The distribution of the token after one position.

    Attributes:
        plain: softmax of the logits (V,), before any setting.
        sampled: the distribution that tokens are sampled from (V,), after all settings.
        actual: the actual next token of the run, None at its end.
        stages: the stages from the logits to `sampled`.
        u: the random number in [0, 1) that draws the next token, None without a seed.
    """

    plain: np.ndarray
    sampled: np.ndarray
    actual: int | None
    stages: SamplingStages | None = None
    u: float | None = None

    @property
    def sampled_token_id(self) -> int | None:
        """The token that `u` samples, None without a seed."""
        return None if self.u is None else draw_token(self.sampled, self.u)

    def top(self, n: int) -> np.ndarray:
        """Return the ids of the n most probable tokens, most probable first; ties by lower id."""
        return top_indices(self.plain, n)

    def rank(self, token_id: int) -> int:
        """Return the rank of a token: 1 + the number of more probable tokens."""
        return int((self.plain > self.plain[token_id]).sum()) + 1

    @property
    def entropy(self) -> float:
        """Entropy −Σ p log₂ p of `sampled`, in bits."""
        return _entropy(self.sampled)

    @property
    def plain_entropy(self) -> float:
        """Entropy of `plain`, the distribution before any setting, in bits."""
        return _entropy(self.plain)


def _entropy(probabilities: np.ndarray) -> float:
    p = probabilities[probabilities > 0]
    return float(max(0.0, -(p * np.log2(p)).sum()))


def next_token_distribution(
    trace: Trace,
    position: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    *,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    seed: int | None = None,
    start: int = 0,
) -> NextTokenDistribution:
    """Return the distribution after `position`, and the token that `model.generate` samples with these settings.

    Args:
        temperature, top_k, top_p, min_p, repetition_penalty: see `sampling_stages`; the penalty falls on the
            tokens up to `position`.
        seed: of the random numbers, None if nothing is drawn.
        start: how many tokens of the text come before the trace's first one.

    Raises:
        ValueError: a setting is out of its range.
    """
    logits = trace.logits.row(position)  # (V,)
    following = position + 1
    limits = {"top_p": top_p, "min_p": min_p, "repetition_penalty": repetition_penalty}
    stages = sampling_stages(logits, temperature, top_k, **limits, previous=trace.token_ids[:following])
    return NextTokenDistribution(
        plain=sampling_distribution(logits),
        sampled=stages.probabilities,
        actual=trace.token_ids[following] if following < len(trace) else None,
        stages=stages,
        u=None if seed is None else uniform_draw(seed, start + following),
    )


def predict_next_token(
    trace: Trace, position: int, settings: GenerationSettings, start: int = 0
) -> NextTokenDistribution:
    """Return `next_token_distribution` with a page's settings."""
    return next_token_distribution(
        trace,
        position,
        settings.temperature,
        settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        repetition_penalty=settings.repetition_penalty,
        seed=settings.seed,
        start=start,
    )


def ranking_without_interventions(trace: Trace, position: int) -> np.ndarray:
    """Return all token ids by decreasing probability after `position` without interventions, (V,); ties by lower id.

    For a run with interventions this is the ranking without them, so that a rank keeps naming the same token.
    """
    return next_token_ranking(trace.baseline or trace, position)


def next_token_ranking(trace: Trace, position: int) -> np.ndarray:
    """Return all token ids by decreasing probability in the run itself, with its interventions, (V,)."""
    return trace.logits.top(trace.config.vocab_size, position)


def token_rank(trace: Trace, position: int, token_id: int) -> int:
    """Return a token's rank in the run itself, from 1."""
    return trace.logits.rank(token_id, position)


def surprisal(trace: Trace) -> np.ndarray:
    """Return the surprisal −log₂ p of each token in bits, (T,); NaN for the first."""
    return np.concatenate([[np.nan], (trace.logits.log_sum_exp[:-1] - trace.logits.summary.next_logit) / np.log(2)])


def entropy(trace: Trace) -> np.ndarray:
    """Return the entropy of the prediction of each token in bits, (T,); NaN for the first."""
    return np.concatenate([[np.nan], trace.logits.entropy[:-1]])


def actual_token_ranks(trace: Trace) -> np.ndarray:
    """Return the rank of each actual token in its prediction, (T,): 1 is the most probable; NaN for the first."""
    return np.concatenate([[np.nan], trace.logits.summary.next_rank])


NATS_PER_BIT = float(np.log(2))


def mean_text_loss(trace: Trace) -> float:
    """Return the mean of −ln p over the run's tokens without the first, in nats per token.

    This is the training loss on this text. NaN for a single token.
    """
    bits = surprisal(trace)[1:]
    return float(np.mean(bits, dtype=np.float64)) * NATS_PER_BIT if len(bits) else float("nan")


@dataclass(frozen=True)
class SamplingRow:
    """One token's values at the sampling stages.

    Attributes:
        token_id: the token.
        rank: rank by penalised logit, as used by top-k: 1 has the largest; ties
            by lower id.
        logit, penalised, scaled, probability, cumulative: see `SamplingStages`.
        plain: softmax of the logits, the model's own probability.
        weight: e^(scaled − the largest scaled), probability relative to the most probable token, as used by min-p.
        ahead: cumulative probability of better ranked tokens among those within top-k, as used by top-p.
        cut_by: the limit that excludes it: "top_k", "top_p" or "min_p"; None if it is included.
    """

    token_id: int
    rank: int
    logit: float
    penalised: float
    scaled: float
    plain: float
    weight: float
    ahead: float
    cut_by: str | None
    probability: float
    cumulative: float


@dataclass(frozen=True)
class ProbabilityInterval:
    """The interval [start, end) of [0, 1) in which a uniform random number samples the token."""

    token_id: int
    start: float
    end: float


class SamplingTable:
    """Rows of the sampling table of one position.

    Args:
        stages: sampling stages of the position.

    Attributes:
        ranking: all token ids (V,), that of rank r at r − 1.
        largest: the largest scaled logit.
        total: Σ e^(scaled − largest) over the tokens that are not excluded.
    """

    def __init__(self, stages: SamplingStages):
        self.stages = stages
        self.ranking = np.argsort(-stages.penalised, kind="stable")
        self.largest = float(stages.scaled_logits.max())
        self.total = 1 / float(stages.probabilities.max())  # the likeliest token is never cut and has weight 1
        self._place = np.empty_like(self.ranking)
        self._place[self.ranking] = np.arange(len(self.ranking))
        self._plain = sampling_distribution(stages.logits)
        self._weight = np.exp(stages.scaled_logits - self.largest)
        in_top_k = (self._weight * stages.in_top_k)[self.ranking]
        self._ahead = (np.cumsum(in_top_k) - in_top_k) / in_top_k.sum()  # by rank

    def row(self, token_id: int) -> SamplingRow:
        """Return a token's numbers at every stage of sampling."""
        stages, index = self.stages, int(self._place[token_id])
        limits = {"top_k": stages.in_top_k, "top_p": stages.in_top_p, "min_p": stages.in_min_p}
        return SamplingRow(
            token_id=int(token_id),
            rank=index + 1,
            logit=float(stages.logits[token_id]),
            penalised=float(stages.penalised[token_id]),
            scaled=float(stages.scaled_logits[token_id]),
            plain=float(self._plain[token_id]),
            weight=float(self._weight[token_id]),
            ahead=float(self._ahead[index]),
            cut_by=next((name for name, mask in limits.items() if not mask[token_id]), None),
            probability=float(stages.probabilities[token_id]),
            cumulative=float(stages.cumulative[token_id]),
        )

    def rows(self, max_count: int, always: Collection[int] = (), extra: Collection[int] = ()) -> list[SamplingRow]:
        """Return `max_count` rows by rank, those of `always` and else the best, and in addition those of `extra`."""
        best = [i for i in self.ranking[:max_count].tolist() if i not in always]
        token_ids = {*always, *best[: max(0, max_count - len(set(always)))], *extra}
        return sorted(map(self.row, token_ids), key=lambda row: row.rank)

    def intervals(self, narrowest: float, always: Collection[int] = ()) -> list[ProbabilityInterval]:
        """Return the intervals at least `narrowest` wide and those of `always`, in the order of `draw`.

        Excluded tokens have none.
        """
        probabilities = self.stages.probabilities
        wide = np.flatnonzero(probabilities >= narrowest).tolist()
        token_ids = {*wide, *(i for i in always if probabilities[i] > 0)}
        interval_ends = {int(i): float(self.stages.cumulative[i]) for i in token_ids}
        intervals = [
            ProbabilityInterval(i, max(0.0, end - float(probabilities[i])), end) for i, end in interval_ends.items()
        ]
        return sorted(intervals, key=lambda stretch: stretch.start)


def find_tokens(vocabulary: Sequence[str], search_text: str, ranking: Sequence[int], max_count: int) -> list[int]:
    """Return the ids of tokens that match a search text.

    Args:
        vocabulary: text of every token id.
        search_text: part of a token's text, case-insensitive, with · for a space; or a token's id. "" matches
            nothing.
        ranking: all ids; equally good matches are sorted by it.
        max_count: maximum number of results.

    Returns:
        first the token with that id, then exact matches up to surrounding spaces, then tokens that contain the
            text.
    """
    text = search_text.replace("·", " ").casefold()
    if not text:
        return []
    by_id = [int(text)] if text.isascii() and text.isdigit() and len(text) <= 9 and int(text) < len(vocabulary) else []
    containing = [int(i) for i in ranking if text in vocabulary[i].casefold() and int(i) not in by_id]
    containing.sort(key=lambda i: vocabulary[i].casefold().strip() != text.strip())
    return [*by_id, *containing][:max_count]


FILE, LOGITS = "explorer/analysis/next_token.py", "explorer/tracing/trace.py"
SURPRISAL = SourceLine(FILE, "return np.concatenate([[np.nan], (trace.logits.log_sum_exp")
# measure -> its name, the analysis, how it is worked out again, and the line of the analysis
PREDICTION_MEASURES = {
    "surprisal": (N_("surprisal"), surprisal, arithmetic.surprisal, SURPRISAL),
    "entropy": (N_("entropy"), entropy, arithmetic.entropy, SourceLine(LOGITS, "bits = (np.log(sums) - np.einsum(")),
    "rank": (
        N_("rank"),
        actual_token_ranks,
        arithmetic.rank,
        SourceLine(LOGITS, "(logits > actual).sum(-1) + 1"),
    ),
}


def prediction_measure(trace: Trace, position: int, measure: str) -> Derivation | None:
    """Derive one of `PREDICTION_MEASURES` of a token; None for the first token."""
    name, analysis, calculate, source = PREDICTION_MEASURES[measure]
    displayed_value = get_element(analysis(trace), position)
    if position == 0:
        return None
    logits, read = read_input(trace, "logits", position - 1)
    token_id = trace.token_ids[position]
    token, before = format_token_position(trace, position), format_token_position(trace, position - 1)
    location = _("of {token}, id {token_id}, after {before}", token=token, token_id=token_id, before=before)
    return Derivation(translate(name), location, displayed_value, calculate(logits, token_id, (read,)), source)


def token_probability(
    trace: Trace, position: int, token_id: int, displayed_value: float, source: SourceLine
) -> Derivation:
    """Derive a token's probability after a position, given the displayed value and its source line."""
    logits, read = read_input(trace, "logits", position)
    working = arithmetic.probability(logits, token_id, (read,))
    location = _(
        "of {token} after {before}",
        token=format_token_id(trace, token_id),
        before=format_token_position(trace, position),
    )
    return Derivation(_("probability"), location, displayed_value, working, source)


def next_token_probability(trace: Trace, position: int, token_id: int) -> Derivation:
    """Derive a token's probability after a position."""
    displayed_value = float(next_token_distribution(trace, position).plain[token_id])
    return token_probability(
        trace, position, token_id, displayed_value, SourceLine(FILE, "plain=sampling_distribution(logits)")
    )


def actual_token_probability(trace: Trace, position: int) -> Derivation:
    """Derive the probability of the actual next token."""
    displayed_value = 2 ** -get_element(surprisal(trace), position + 1)
    return token_probability(trace, position, trace.token_ids[position + 1], displayed_value, SURPRISAL)


def text_loss(trace: Trace) -> Derivation | None:
    """Derive the loss of the run's text; None for a single token."""
    value = mean_text_loss(trace)
    if math.isnan(value):
        return None
    read, losses = Input("logits", (), trace.shape("logits")), []
    for position, token_id in enumerate(trace.token_ids[1:]):
        row, _row = read_input(trace, "logits", position)
        top = row.max()
        losses.append(top + math.log(math.fsum(np.exp(row - top))) - row[token_id])
    return Derivation(
        _("loss of this text, in nats a token"),
        translate(LOSS_LOCATION, count=len(losses)),
        value,
        mean(_("loss = mean of −ln p over the tokens"), losses, (read,), _("loss")),
        SourceLine(FILE, "return float(np.mean(bits"),
    )


LOSS_LOCATION = N_("of {count} tokens, all but the first: −ln of the probability that the model gave each")


Shaded = tuple[np.ndarray, list[str]]  # fraction of the full colour (T,), and a text per token
MAX_BITS = 12.0  # surprisal at full colour: a probability of 1 in 4,096
MAX_CACHED_TEXTS = 1 << 14  # during generation all but the last token repeat


@dataclass(frozen=True)
class ShadingMeasure:
    """A measure that tokens are shaded by.

    Attributes:
        description: translatable text.
        values: trace -> (T,), NaN for the first token.
        share: (values, vocabulary size) -> fraction of the full colour, 0 to 1 or more.
        format_value: value -> text.
    """

    description: str
    values: Callable[[Trace], np.ndarray]
    share: Callable[[np.ndarray, int], np.ndarray]
    format_value: Callable[[float], str]


SHADES = {
    "surprisal": ShadingMeasure(
        N_("surprisal: how unexpected it was"),
        surprisal,
        lambda bits, size: bits / MAX_BITS,
        lambda bits: _("surprisal {bits:.2f} bits (probability {probability:.2g})", bits=bits, probability=2**-bits),
    ),
    "entropy": ShadingMeasure(
        N_("entropy: how open the choice was"),
        entropy,
        lambda bits, size: bits / np.log2(size),
        lambda bits: _(
            "entropy before it {bits:.2f} bits (as open as {choices:,.1f} equal choices)", bits=bits, choices=2**bits
        ),
    ),
    "rank": ShadingMeasure(
        N_("rank: its place among the guesses"),
        actual_token_ranks,
        lambda place, size: np.log2(place) / np.log2(size),
        lambda place: _("rank {place:,.0f} of the model’s guesses", place=place),
    ),
}


def shade_tokens(trace: Trace, name: str) -> Shaded:
    """Return the fraction of the full colour (T,), 0 to 1, and the text of each token; 0 and "" for the first."""
    shade = SHADES[name]
    values = shade.values(trace)
    shares = np.nan_to_num(shade.share(values, trace.config.vocab_size)).clip(0, 1)
    return shares, [
        "" if math.isnan(value) else _format_value(name, value, current_locale()) for value in values.tolist()
    ]


@lru_cache(MAX_CACHED_TEXTS)
def _format_value(name: str, value: float, _language: str) -> str:
    return SHADES[name].format_value(value)


MIN_SCALE_BITS = 1.0  # minimum difference at full colour, even if all differences are smaller


def shade_by_surprisal_difference(comparison: Comparison) -> tuple[Shaded, Shaded]:
    """Shade both runs by the surprisal in A minus that of the aligned token in B.

    Fractions from −1 to 1, relative to the largest difference in bits; 0 for unaligned tokens and first tokens.
    """
    bits, partner_bits = surprisal(comparison.trace), comparison.take_aligned(surprisal(comparison.other))
    change = bits - partner_bits  # (T,)
    largest = max(MIN_SCALE_BITS, float(np.nanmax(np.abs(change), initial=0.0)))
    shares = np.nan_to_num(change / largest)
    texts = [_format_surprisal_difference(*values) for values in zip(bits, partner_bits, change, strict=True)]
    partners_of_b = comparison.alignment.inverse
    no_partner_text = _("it has no partner in the other run")
    first = [
        texts[i] if partner is not None else no_partner_text for i, partner in enumerate(comparison.alignment.partners)
    ]
    second = [texts[index] if index is not None else no_partner_text for index in partners_of_b]
    return (shares, first), (np.array([0.0 if index is None else shares[index] for index in partners_of_b]), second)


def _format_surprisal_difference(bits: float, partner_bits: float, change: float) -> str:
    if np.isnan(change):
        return ""
    text = _("surprisal {a:.2f} bits in A, {b:.2f} in B: {change:+.2f}", a=bits, b=partner_bits, change=change)
    return text.replace("-", "−")
