"""The parts of a model on its map: where each stands, what is told of it, and where a click on it leads."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from explorer.analysis.next_token import likeliest, next_token, ranking
from explorer.analysis.overview import Overview
from explorer.analysis.residual import SUBLAYERS
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.overview import plan as at
from explorer.views.overview.plan import Plan
from explorer.views.style import label

CLICK = ("view", "layer", "head", "target")  # what a click on a part selects
MOST_LISTED = 5  # next tokens, besides those chosen


@dataclass(frozen=True)
class Part:
    """A part of the model.

    Attributes:
        kind: "head", "norm", …; parts of a kind look alike.
        x: left and right edge; of a disc the centre.
        y: lower and upper edge; of a disc the centre.
        told: about it, plotly text.
        click: the values of the fields `CLICK`.
        value: what is drawn of it: what it adds to the logit or, of a next token, its probability.
        written: on it.
    """

    kind: str
    x: tuple[float, float] | float
    y: tuple[float, float] | float
    told: str
    click: tuple[str, int, int, int]
    value: float | None = None
    written: str = ""


@dataclass(frozen=True)
class Parts:
    """All parts, in the order of the data's way.

    Attributes:
        found: the numbers of the run at the selected token.
        score: name of the logit that is explained, as plotly text.
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

    @property
    def plan(self) -> Plan:
        return Plan(self.trace.config)

    def part(self, kind: str, x, y, view: str, *told: str, value=None, written: str = "", **chosen: int) -> Part:
        """A part whose click opens a view at what is `chosen`, and else at what is selected already."""
        chosen = self.selection.as_dict() | {"view": view} | chosen
        return Part(kind, x, y, "<br>".join(told), tuple(chosen[field] for field in CLICK), value, written)

    def adds(self, value: float) -> str:
        return f"adds {full(value)} to {self.score}"

    def embedding(self) -> Iterator[Part]:
        query, found = self.selection.query, self.found
        token, width = label(self.trace.tokens[query]), f"{self.trace.config.d_model} numbers"
        told = f"embedding of {token}: {width}, length {full(found.token)}", self.adds(found.parts.token)
        written = f"{label(self.trace.tokens[query], 10)}<br>embedding"
        yield self.part("token", at.TOKEN, at.BESIDE_STREAM, "tokens", *told, written=written)
        if "position_embed" in self.trace:
            told = f"vector of position {query}: {width}, length {full(found.positions)}"
            told = told, self.adds(found.parts.positions)
            yield self.part("position", at.TOKEN, at.POSITION, "positions", *told, written=f"position {query}")
            told = f"embedding + position: length {full(found.stream[0])}"
            yield self.part("addition", at.POSITION_ADDED, at.STREAM, "residual", told, layer=0)

    def attention(self, layer: int) -> Iterator[Part]:
        found, config = self.found, self.trace.config
        if not self.plan.post:
            yield self.norm(layer, "attn")
        if config.position == "rope":
            told = f"layer {layer}: every head’s q and k are turned", "by the angles of their positions"
            yield self.part("rotation", self.plan.at(layer, 0.5), at.ROTATION, "positions", *told, layer=layer)
        for head, value in enumerate(found.parts.heads[layer]):
            left, right, low, high = self.plan.head(layer, head)
            yield self.part(
                "head",
                (left, right),
                (low, high),
                "attention",
                f"layer {layer} head {head}",
                f"writes a vector of length {full(found.head_writes[layer, head])}",
                self.adds(value),
                value=value,
                written=str(head) if min(right - left, high - low) >= 12 else "",
                layer=layer,
                head=head,
            )
        bias = f"blocks.{layer}.attn.o_proj.bias" in self.trace.weights
        yield self.part(
            "o_proj",
            self.plan.o_proj(layer),
            at.O_PROJ,
            "attention",
            f"layer {layer} o_proj: what all heads fetched becomes",
            f"one vector of length {full(found.writes[layer, 0])}",
            self.adds(found.adds[layer, 0]),
            *([f"(of this its bias {full(found.parts.biases[layer])})"] if bias else []),
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
            self.plan.box(layer),
            at.FEED_FORWARD,
            "feed_forward",
            f"layer {layer} feed-forward, {self.trace.config.d_ff:,} neurons",
            f"writes a vector of length {full(self.found.writes[layer, 1])}",
            self.adds(self.found.adds[layer, 1]),
            value=self.found.adds[layer, 1],
            written="feed-forward" if self.plan.roomy else "",  # the row has its name at the left
            layer=layer,
        )
        yield self.addition(layer, "ffn")
        if self.plan.post:
            yield self.norm(layer, "ffn")

    def norm(self, layer: int, sublayer: str) -> Part:
        place = "after the addition" if self.plan.post else f"before the {SUBLAYERS[sublayer]}"
        divisor = full(self.found.divisors[layer, list(SUBLAYERS).index(sublayer)])
        told = f"layer {layer} {sublayer}_norm, {place}", f"divides by {divisor}"
        return self.part("norm", *self.plan.norm(layer, sublayer), "residual", *told, layer=layer)

    def addition(self, layer: int, sublayer: str) -> Part:
        x = self.plan.place(layer, f"add {sublayer}")
        stage = self.plan.changes().index(x) + 1
        before, after = (full(length) for length in self.found.stream[stage - 1 : stage + 1])
        told = f"layer {layer}: the stream + what {SUBLAYERS[sublayer]} writes", f"length {before} → {after}"
        return self.part("addition", x, at.STREAM, "residual", *told, layer=layer)

    def end(self) -> Iterator[Part]:
        config, parts = self.trace.config, self.found.parts
        if self.found.last_divisor is not None:
            told = ["final_norm, before the unembedding", f"divides by {full(self.found.last_divisor)}"]
            told += [f"all norms’ shifts β: {self.adds(parts.shift)}"] * (config.norm == "layernorm")
            yield self.part("norm", at.FINAL_NORM, at.STREAM, "residual", *told, layer=config.num_layers - 1)
        told = f"lm_head, the unembedding: {config.d_model} numbers become", f"{config.vocab_size:,} logits"
        told = *told, f"{self.score} = {full(parts.logit)}"
        yield self.part("lm_head", at.LM_HEAD, at.BESIDE_STREAM, "prediction", *told, written="lm_head")
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
            middle = at.STREAM + at.ROW * ((len(rows) - 1) / 2 - place)
            name = label(self.trace.vocabulary[token_id])
            told = f"{name}: rank {row + 1:,}, probability {full(plain[token_id])}", f"logit {full(logits[token_id])}"
            edges = middle - at.ROW / 2 + 1, middle + at.ROW / 2 - 1
            yield self.part(
                "next_token",
                at.NEXT_TOKENS,
                edges,
                "overview",
                *told,
                "click to explain it",
                value=float(plain[token_id]),
                written=label(self.trace.vocabulary[token_id], 7),
                target=int(np.flatnonzero(ranked == token_id)[0]) + 1,
            )


def full(value: float) -> str:
    """Six significant digits, with a true minus sign."""
    return f"{value:.6g}".replace("-", "−")
