"""Which parts stand in for one another, in sentences of which each shows it by silencing them."""

from collections.abc import Iterator

from explorer.analysis.stand_ins import StandIns
from explorer.explain.notation import listed, number, quoted
from explorer.language import _
from explorer.lessons.why import Clause, named, silencing
from explorer.tracing.trace import Trace


def told(trace: Trace, position: int, found: StandIns) -> Iterator[Clause]:
    """What `explorer.analysis.stand_ins.stand_ins` found after a position."""
    given = {
        "token": quoted(trace.vocabulary[found.token_id]),
        "rival": quoted(trace.vocabulary[found.rival_id]),
        "probability": number(2**found.log2_p),
    }
    look, picture = {"view": "prediction", "query": position}, "prediction-parts"
    if not found.sets:
        words = _(
            "{token} has probability {probability}: fewer than two parts raise its logit above that of {rival}.",
            **given,
        )
        yield Clause(words, look, picture)
        return
    words = _(
        "{token} has probability {probability}. {parts} add most to its lead over {rival}; of each size the set of "
        "them that costs most together, beyond what its parts cost one by one:",
        parts=_capital(listed(map(named, found.asked))),
        **given,
    )
    yield Clause(words, look, picture)
    for each in found.sets:
        words = _(
            "{parts}: one by one {alone} bits, {sum} in sum; together {together}, which leaves a probability of "
            "{after}.",
            parts=_capital(listed(map(named, each.parts))),
            alone=", ".join(number(bits) for bits in each.alone),
            sum=number(sum(each.alone)),
            together=number(each.together),
            after=number(2 ** (found.log2_p - each.together)),
        )
        yield Clause(words, silencing(trace, position, each.parts), "experiments-together_probability")


def _capital(words: str) -> str:
    """As at the beginning of a sentence."""
    return words[:1].upper() + words[1:]
