"""How numbers come about that two runs are compared by."""

import math

from explorer.analysis.parting import head_distance, stream_distance, surprisal_difference
from explorer.analysis.residual import stages
from explorer.explain.analysed.arithmetic import mean, quotient
from explorer.explain.analysed.distribution import surprisal
from explorer.explain.derivation import Derivation
from explorer.explain.notation import number
from explorer.explain.place import at
from explorer.explain.point import element, nth
from explorer.explain.source import Source
from explorer.explain.working import Working, take
from explorer.language import _
from explorer.tracing.comparison import Comparison

PARTING = "explorer/analysis/parting.py"


def beside(comparison: Comparison, position: int) -> str:
    """A token and its partner."""
    partner = comparison.alignment.partners[position]
    return _(
        "{token} of A beside {other} of B", token=at(comparison.trace, position), other=at(comparison.other, partner)
    )


def stream_apart(comparison: Comparison, row: int, position: int) -> Derivation | None:
    """How far apart the streams of two tokens are at one of A's `stages`; None of a token without a partner."""
    place = nth(stages(comparison.trace), row)
    drawn = element(stream_distance(comparison), row, position)
    partner = comparison.alignment.partners[position]
    if partner is None:
        return None
    mine, from_a = take(comparison.trace, place.tap, position)
    theirs, from_b = take(comparison.other, place.tap, partner)
    apart, length = (math.sqrt(math.fsum(x * x)) for x in (mine - theirs, theirs))
    return Derivation(
        _("how far apart the streams are at {stage}", stage=place.name),
        beside(comparison, position),
        drawn,
        quotient(_("‖x of A − x of B‖ / ‖x of B‖"), apart, length, (from_a, from_b)),
        Source(PARTING, "found.append(np.divide(apart, lengths"),
    )


def heads_apart(comparison: Comparison, layer: int, head: int) -> Derivation:
    """How differently a head looks in both runs."""
    drawn = element(head_distance(comparison), layer, head)
    name = f"blocks.{layer}.attn.pattern"
    (mine, from_a), (theirs, from_b) = (take(run, name, head) for run in comparison.runs)
    partners, back = comparison.alignment.partners, comparison.alignment.back
    apart = []
    for query, partner in enumerate(partners):
        if partner is None:
            continue
        pairs = [(mine[query, key], 0.0 if p is None else theirs[partner, p]) for key, p in enumerate(partners)]
        pairs += [(0.0, theirs[partner, key]) for key, p in enumerate(back) if p is None]
        apart.append(_jensen_shannon(pairs))
    symbols = _("mean over queries of √(½ Σ p log₂ (p / m) + ½ Σ q log₂ (q / m)), m = ½ (p + q)")
    return Derivation(
        _("Jensen-Shannon distance of the head’s weights"),
        _(
            "layer {layer} head {head}, over {count} pairs of queries",
            layer=layer,
            head=head,
            count=len(apart),
        ),
        drawn,
        mean(symbols, apart, (from_a, from_b)),
        Source(PARTING, "return np.stack([np.nanmean(pattern_distances("),
    )


def _jensen_shannon(pairs: list[tuple[float, float]]) -> float:
    def term(x: float, middle: float) -> float:
        return x * math.log2(x / middle) if x > 0 else 0.0

    total = math.fsum((term(p, (p + q) / 2) + term(q, (p + q) / 2)) / 2 for p, q in pairs)
    return math.sqrt(min(1.0, max(0.0, total)))


def surprisals_apart(comparison: Comparison, position: int) -> Derivation | None:
    """By how many bits a token surprises A more than its partner surprises B; None where nothing is to be compared."""
    drawn = element(surprisal_difference(comparison), position)
    partner = comparison.alignment.partners[position]
    if not position or not partner:
        return None
    a, from_a = take(comparison.trace, "logits", position - 1)
    b, from_b = take(comparison.other, "logits", partner - 1)
    after = surprisal(a, comparison.trace.token_ids[position], ()).value
    before = surprisal(b, comparison.other.token_ids[partner], ()).value
    numbers = {"a": number(after), "b": number(before), "less": number(after - before)}
    return Derivation(
        _("how much more A is surprised, in bits"),
        beside(comparison, position),
        drawn,
        Working(
            _("A − B, each −log₂ p"), lambda: _("{a} − {b} = {less} bits", **numbers), after - before, (from_a, from_b)
        ),
        Source(PARTING, "return surprisal(comparison.trace) - "),
    )
