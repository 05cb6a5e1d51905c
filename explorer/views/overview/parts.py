"""The parts of a model on its map: where each stands, what is told of it, and where a click on it leads."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from explorer.analysis.next_token import likeliest, next_token, ranking
from explorer.analysis.overview import Overview
from explorer.analysis.residual import SUBLAYERS
from explorer.language import N_, _, look_up
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.overview import plan as at
from explorer.views.overview.diagram import Part
from explorer.views.overview.plan import Box, Plan
from explorer.views.style import shortened

MOST_LISTED = 5  # next tokens, besides those chosen
BEFORE = {
    "attn": N_("layer {layer} attn_norm, before the attention"),
    "ffn": N_("layer {layer} ffn_norm, before the feed-forward"),
}
ADDITIONS = {
    "attn": N_("layer {layer}: the stream + what attention writes"),
    "ffn": N_("layer {layer}: the stream + what feed-forward writes"),
}


@dataclass(frozen=True)
class Parts:
    """All parts, in the order of the data's way.

    Attributes:
        found: the numbers of the run at the selected token.
        score: name of the logit that is explained.
    """

    trace: Trace
    selection: Selection
    found: Overview
    score: str

    def __iter__(self) -> Iterator[Part]:
        yield from self.embedding()
        for layer in range(self.trace.config.num_layers):
            yield from self.attention(layer)
            yield from self.feed_forward(layer)
        yield from self.end()

    @cached_property
    def plan(self) -> Plan:
        return Plan(self.trace.config)

    def part(
        self, kind: str, box: Box, view: str, *told: str, value: float | None = None, written: str = "", **chosen: int
    ) -> Part:
        """A part whose click opens a view at what is `chosen`."""
        return Part(kind, box, "\n".join(told), {"view": view} | chosen, value, written)

    def adds(self, value: float) -> str:
        return _("adds {value} to {logit}", value=full(value), logit=self.score)

    def embedding(self) -> Iterator[Part]:
        query, found = self.selection.query, self.found
        token, width = self.trace.tokens[query], self.trace.config.d_model
        told = _(
            "embedding of {token}: {width} numbers, length {length}",
            token=shortened(token),
            width=width,
            length=full(found.token),
        )
        told, written = (told, self.adds(found.parts.token)), "\n".join((shortened(token, 10), _("embedding")))
        yield self.part("token", rectangle(at.TOKEN, at.BESIDE_STREAM), "tokens", *told, written=written)
        if "position_embed" in self.trace:
            told = _(
                "vector of position {position}: {width} numbers, length {length}",
                position=query,
                width=width,
                length=full(found.positions),
            )
            told, box = (told, self.adds(found.parts.positions)), rectangle(at.TOKEN, at.POSITION)
            yield self.part("position", box, "positions", *told, written=_("position {position}", position=query))
            told = _("embedding + position: length {length}", length=full(found.stream[0]))
            yield self.part("addition", self.plan.around(at.POSITION_ADDED, at.STREAM), "residual", told, layer=0)

    def attention(self, layer: int) -> Iterator[Part]:
        found, config = self.found, self.trace.config
        if not self.plan.post:
            yield self.norm(layer, "attn")
        if config.position == "rope":
            told = _("layer {layer}: every head’s q and k are turned by the angles of their positions", layer=layer)
            box = self.plan.around(self.plan.at(layer, 0.5), at.ROTATION)
            yield self.part("rotation", box, "positions", told, layer=layer)
        for head, value in enumerate(found.parts.heads[layer]):
            left, upper, right, lower = box = self.plan.head(layer, head)
            yield self.part(
                "head",
                box,
                "attention",
                _("layer {layer} head {head}", layer=layer, head=head),
                _("writes a vector of length {length}", length=full(found.head_writes[layer, head])),
                self.adds(value),
                value=float(value),
                written=str(head) if min(right - left, lower - upper) >= 12 else "",
                layer=layer,
                head=head,
            )
        bias = f"blocks.{layer}.attn.o_proj.bias" in self.trace.weights
        yield self.part(
            "o_proj",
            rectangle(self.plan.o_proj(layer), at.O_PROJ),
            "attention",
            _("layer {layer} o_proj: what all heads fetched becomes one vector", layer=layer),
            _("of length {length}", length=full(found.writes[layer, 0])),
            self.adds(found.adds[layer, 0]),
            *([_("(of this its bias {value})", value=full(found.parts.biases[layer]))] if bias else []),
            written="o_proj" if self.plan.roomy else "",
            layer=layer,
        )
        yield self.addition(layer, "attn")
        if self.plan.post:
            yield self.norm(layer, "attn")

    def feed_forward(self, layer: int) -> Iterator[Part]:
        if not self.plan.post:
            yield self.norm(layer, "ffn")
        yield self.part(
            "feed_forward",
            rectangle(self.plan.box(layer), at.FEED_FORWARD),
            "feed_forward",
            _("layer {layer} feed-forward, {neurons:,} neurons", layer=layer, neurons=self.trace.config.d_ff),
            _("writes a vector of length {length}", length=full(self.found.writes[layer, 1])),
            self.adds(self.found.adds[layer, 1]),
            value=float(self.found.adds[layer, 1]),
            written=_("feed-forward") if self.plan.roomy else "",  # the row has its name at the left
            layer=layer,
        )
        yield self.addition(layer, "ffn")
        if self.plan.post:
            yield self.norm(layer, "ffn")

    def norm(self, layer: int, sublayer: str) -> Part:
        if self.plan.post:
            place = _("layer {layer} {norm}, after the addition", layer=layer, norm=f"{sublayer}_norm")
        else:
            place = look_up(BEFORE[sublayer], layer=layer)
        divisor = full(self.found.divisors[layer, list(SUBLAYERS).index(sublayer)])
        told = place, _("divides by {divisor}", divisor=divisor)
        return self.part("norm", self.plan.around(*self.plan.norm(layer, sublayer)), "residual", *told, layer=layer)

    def addition(self, layer: int, sublayer: str) -> Part:
        x = self.plan.place(layer, f"add_{sublayer}")
        stage = self.plan.changes().index(x) + 1
        before, after = (full(length) for length in self.found.stream[stage - 1 : stage + 1])
        told = look_up(ADDITIONS[sublayer], layer=layer), _("length {before} → {after}", before=before, after=after)
        return self.part("addition", self.plan.around(x, at.STREAM), "residual", *told, layer=layer)

    def end(self) -> Iterator[Part]:
        config, parts = self.trace.config, self.found.parts
        if self.found.last_divisor is not None:
            divides = _("divides by {divisor}", divisor=full(self.found.last_divisor))
            told = [_("final_norm, before the unembedding"), divides]
            if config.norm == "layernorm":
                told.append(_("all norms’ shifts β: {adds}", adds=self.adds(parts.shift)))
            box = self.plan.around(at.FINAL_NORM, at.STREAM)
            yield self.part("norm", box, "residual", *told, layer=config.num_layers - 1)
        told = _(
            "lm_head, the unembedding: {width} numbers become {size:,} logits",
            width=config.d_model,
            size=config.vocab_size,
        )
        told, box = (told, f"{self.score} = {full(parts.logit)}"), rectangle(at.LM_HEAD, at.BESIDE_STREAM)
        yield self.part("lm_head", box, "prediction", *told, written="lm_head")
        yield from self.next_tokens()

    def next_tokens(self) -> Iterator[Part]:
        """The likeliest, and those chosen wherever they rank."""
        query = self.selection.query
        ranked, now = ranking(self.trace, query), likeliest(self.trace, query)
        plain, logits = next_token(self.trace, query).plain, self.trace["logits"][query]
        chosen = {ranked[rank - 1] for rank in (self.selection.target, self.selection.rival) if rank}
        rows = [row for row, token_id in enumerate(now) if row < MOST_LISTED or token_id in chosen]
        for place, row in enumerate(rows):
            token_id = now[row]
            middle = at.STREAM + at.ROW * (place - (len(rows) - 1) / 2)
            token = self.trace.vocabulary[token_id]
            told = _(
                "{token}: rank {rank:,}, probability {probability}\nlogit {logit}\nchoose it to explain it",
                token=shortened(token),
                rank=row + 1,
                probability=full(plain[token_id]),
                logit=full(logits[token_id]),
            )
            yield Part(
                "next_token",
                rectangle(at.NEXT_TOKENS, (middle - at.ROW / 2 + 1, middle + at.ROW / 2 - 1)),
                told,
                {"target": int(np.flatnonzero(ranked == token_id)[0]) + 1},
                float(plain[token_id]),
                shortened(token, 7),
            )


def rectangle(across: tuple[float, float], down: tuple[float, float]) -> Box:
    """The box between two edges across and two down."""
    return across[0], down[0], across[1], down[1]


def full(value: float) -> str:
    """Six significant digits, with a true minus sign."""
    return f"{value:.6g}".replace("-", "−")
