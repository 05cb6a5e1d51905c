"""Why a token was predicted, in sentences of which each says where it can be seen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.analysis.why import DECISIVE, Part, Reason, Why
from explorer.explain.notation import listed, number, quoted
from explorer.language import _
from explorer.state.interventions import BETWEEN, MOST_EDITS
from explorer.tracing.trace import Trace


@dataclass(frozen=True)
class Clause:
    """A sentence, and where it can be seen.

    Attributes:
        look: the change of the selection that shows it.
        picture: element id of the picture there.
    """

    words: str
    look: dict[str, Any]
    picture: str


def told(trace: Trace, position: int, why: Why) -> Iterator[Clause]:
    """What `explorer.analysis.why.why` found for a token after a position."""
    token, rival = (quoted(trace.vocabulary[token_id]) for token_id in (why.token_id, why.rival_id))
    given = {"token": token, "rival": rival, "probability": number(2**why.log2_p), "lead": number(abs(why.lead))}
    if why.lead >= 0:
        words = _("Why {token}, with probability {probability}? Its logit is {lead} above that of {rival}.", **given)
    else:
        words = _("{token} has probability {probability}: its logit is {lead} below that of {rival}.", **given)
    yield Clause(words, {"view": "prediction", "query": position}, "prediction-parts")
    for reason in why.reasons:
        yield from _of_reason(trace, position, why, reason)
    if why.together is not None:
        yield _of_all(trace, position, why, why.together)
    if why.partner:
        yield _of_partner(position, why, *why.partner)
    yield from _of_dearest(position, why)


def _of_reason(trace: Trace, position: int, why: Why, reason: Reason) -> Iterator[Clause]:
    part, adds = reason.part, number(reason.adds)
    if part.head is None:
        words = _("The feed-forward of layer {layer} adds {adds} to that difference.", layer=part.layer, adds=adds)
        yield Clause(words, _place(part, "feed_forward", position), "feed_forward-curve")
    else:
        words = _(
            "Layer {layer} head {head} adds {adds} to that difference; it looks most at {key} ({place}), with weight "
            "{weight}.",
            layer=part.layer,
            head=part.head,
            adds=adds,
            key=quoted(trace.tokens[reason.key]),
            place=reason.key,
            weight=number(reason.weight),
        )
        look = _place(part, "attention", position) | {"key": reason.key, "pattern": "weight"}
        yield Clause(words, look, "attention-pattern")
    after = number(2 ** (why.log2_p - reason.costs))
    if reason.costs >= DECISIVE:
        words = _("Silenced alone, it takes the probability down to {after}.", after=after)
    elif reason.costs <= -DECISIVE:
        words = _("Silenced alone, it lets the probability rise to {after}.", after=after)
    else:
        words = _("Silenced alone, it leaves the probability at {after}.", after=after)
    yield Clause(words, _place(part, "experiments", position), _ablation(part))


def _of_all(trace: Trace, position: int, why: Why, together: float) -> Clause:
    parts = [reason.part for reason in why.reasons]
    words = _(
        "Silenced together, {parts} take the probability down to {after}: that costs {together} bits, where one by one "
        "they cost {sum} in sum.",
        parts=listed(map(named, parts)),
        after=number(2 ** (why.log2_p - together)),
        together=number(together),
        sum=number(sum(reason.costs for reason in why.reasons)),
    )
    return Clause(words, silencing(trace, position, parts), "experiments-together_probability")


def _of_partner(position: int, why: Why, partner: Reason, both: float) -> Clause:
    first = why.reasons[0]
    words = _(
        "Two stand in for one another, {first} and {second}: silenced alone they cost {one} and {other} bits, "
        "together {both}.",
        first=named(first.part),
        second=named(partner.part),
        one=number(first.costs),
        other=number(partner.costs),
        both=number(both),
    )
    return Clause(words, _place(partner.part, "experiments", position), _ablation(partner.part))


def _of_dearest(position: int, why: Why) -> Iterator[Clause]:
    part, bits = why.dearest
    look, picture = _place(part, "experiments", position), _ablation(part)
    if bits < DECISIVE:
        words = _("No part decides it alone: silenced one by one, none costs more than {bits} bits.", bits=number(bits))
        yield Clause(words, look, picture)
    elif part not in [reason.part for reason in why.reasons]:
        words = _(
            "What is missed most is {part}: without it {bits} bits are lost.", part=named(part), bits=number(bits)
        )
        yield Clause(words, look, picture)


def silencing(trace: Trace, position: int, parts: Sequence[Part]) -> dict[str, Any]:
    """The change of the page's state that silences parts besides what is changed, as far as a run has room for it."""
    edits = (*trace.edits, *(part.silenced for part in parts))
    look = {"view": "experiments", "query": position}
    return look | ({"edits": BETWEEN.join(map(str, edits))} if len(edits) <= MOST_EDITS else {})


def named(part: Part) -> str:
    if part.head is None:
        return _("the feed-forward of layer {layer}", layer=part.layer)
    return _("layer {layer} head {head}", layer=part.layer, head=part.head)


def _place(part: Part, view: str, position: int) -> dict[str, Any]:
    return {"view": view, "layer": part.layer, "query": position} | ({} if part.head is None else {"head": part.head})


def _ablation(part: Part) -> str:
    return "experiments-sublayers" if part.head is None else "experiments-heads"
