"""The parts of a model on its map: where each stands, what is told of it, and where a click on it leads."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from explorer.analysis.overview import Overview
from explorer.analysis.residual import SUBLAYERS
from explorer.architecture import shifts
from explorer.architecture.layout import layout
from explorer.architecture.stream import giver, output_norm, readers, stream_norms
from explorer.explain.captured.edits import first_position
from explorer.explain.notation import full
from explorer.language import N_, _, look_up
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.views.overview.diagram import Part
from explorer.views.overview.next_tokens import NextToken, next_tokens
from explorer.views.overview.plan import Box, Plan
from explorer.views.overview.tall import Tall
from explorer.views.overview.wide import Wide
from explorer.views.style import shortened

BEFORE = {  # by the sublayers that read what a norm gives out
    ("attn",): N_("layer {layer} {norm}, before the attention"),
    ("ffn",): N_("layer {layer} {norm}, before the feed-forward"),
    ("attn", "ffn"): N_("layer {layer} {norm}, before the attention and the feed-forward"),
}
AFTER = {  # by the sublayer whose output a norm normalises
    "attn": N_("layer {layer} {norm}, after the attention"),
    "ffn": N_("layer {layer} {norm}, after the feed-forward"),
}
LENGTHS = {  # of what o_proj gives, by whether a norm comes after it
    False: N_("of length {length}"),
    True: N_("of length {length} after its norm"),
}
ADDITIONS = {  # by the sublayers that are added
    ("attn",): N_("layer {layer}: the stream + what attention writes"),
    ("ffn",): N_("layer {layer}: the stream + what feed-forward writes"),
    ("attn", "ffn"): N_("layer {layer}: the stream + what attention writes + what feed-forward writes"),
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
            yield from self.block(layer)
        yield from self.end()

    def block(self, layer: int) -> Iterator[Part]:
        """Each sublayer after the norm that it reads through, if no other did before, and before the norm of what it
        gives out, if there is one; once all that a sum takes is there, the addition, and after it the norm of the
        stream, if there is one."""
        found, on_stream = layout(self.trace.config), stream_norms(self.trace.config)
        inside = {"attn": self.attention, "ffn": self.feed_forward}
        for sublayer in SUBLAYERS:
            read = found.reads[sublayer]
            if read in found.norms and read not in on_stream and readers(self.trace.config, read)[0] == sublayer:
                yield self.norm(layer, read)
            yield from inside[sublayer](layer)
            if found.writes[sublayer] in found.norms:
                yield self.norm(layer, found.writes[sublayer])
            yield from (self.addition(layer, added) for added in found.sums.values() if added[-1] == sublayer)
            yield from (self.norm(layer, norm) for norm in on_stream if norm.startswith(sublayer))

    @cached_property
    def listed(self) -> list[NextToken]:
        return next_tokens(self.trace, self.selection)

    @cached_property
    def plans(self) -> tuple[Wide, Tall]:
        return Wide(self.trace.config, len(self.listed)), Tall(self.trace.config, len(self.listed))

    def boxes(self, place: Callable[[Plan], Box]) -> tuple[Box, ...]:
        return tuple(place(plan) for plan in self.plans)

    def part(
        self,
        kind: str,
        place: Callable[[Plan], Box],
        view: str,
        *told: str,
        value: float | None = None,
        written: str = "",
        **chosen: int,
    ) -> Part:
        """A part at its `place` on each plan, whose click opens a view at what is `chosen`."""
        return Part(kind, self.boxes(place), "\n".join(told), {"view": view} | chosen, value, written)

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
        yield self.part(
            "token", lambda plan: plan.box(plan.token, plan.beside_stream), "tokens", *told, written=written
        )
        if "position_embed" in self.trace:
            place = first_position(self.trace) + query
            told = _(
                "vector of position {position}: {width} numbers, length {length}",
                position=place,
                width=width,
                length=full(found.positions),
            )
            yield self.part(
                "position",
                lambda plan: plan.box(plan.token, plan.position),
                "positions",
                told,
                self.adds(found.parts.positions),
                written=_("position {position}", position=place),
            )
            told = _("embedding + position: length {length}", length=full(found.stream[0]))
            yield self.part(
                "addition", lambda plan: plan.disc(plan.position_added, plan.stream), "residual", told, layer=0
            )

    def attention(self, layer: int) -> Iterator[Part]:
        found, config = self.found, self.trace.config
        if config.rotates(layer):
            told = _("layer {layer}: every head’s q and k are turned by the angles of their positions", layer=layer)
            yield self.part(
                "rotation", lambda plan: plan.disc(plan.middle(layer), plan.rotary), "positions", told, layer=layer
            )
        for head in range(config.num_heads):
            yield self.head(layer, head)
        bias = f"blocks.{layer}.attn.o_proj.bias" in self.trace.weights
        yield self.part(
            "o_proj",
            lambda plan: plan.box(plan.span(layer, "o_proj"), plan.o_proj),
            "attention",
            _("layer {layer} o_proj: what all heads fetched becomes one vector", layer=layer),
            look_up(LENGTHS[output_norm(config, layer, "attn") is not None], length=full(found.writes[layer, 0])),
            self.adds(found.adds[layer, 0]),
            *([_("(of this its bias {value})", value=full(found.parts.biases[layer]))] if bias else []),
            written="o_proj",
            layer=layer,
        )

    def head(self, layer: int, head: int) -> Part:
        value = self.found.parts.heads[layer, head]
        return self.part(
            "head",
            lambda plan: plan.head(layer, head),
            "attention",
            _("layer {layer} head {head}", layer=layer, head=head),
            _("writes a vector of length {length}", length=full(self.found.head_writes[layer, head])),
            self.adds(value),
            value=float(value),
            written=str(head),
            layer=layer,
            head=head,
        )

    def feed_forward(self, layer: int) -> Iterator[Part]:
        yield self.part(
            "feed_forward",
            lambda plan: plan.box(plan.span(layer, "feed_forward"), plan.feed_forward),
            "feed_forward",
            _("layer {layer} feed-forward, {neurons:,} neurons", layer=layer, neurons=self.trace.config.d_ff),
            _("writes a vector of length {length}", length=full(self.found.writes[layer, 1])),
            self.adds(self.found.adds[layer, 1]),
            value=float(self.found.adds[layer, 1]),
            written=_("feed-forward"),
            layer=layer,
        )

    def norm(self, layer: int, name: str) -> Part:
        if name in stream_norms(self.trace.config):
            place = _("layer {layer} {norm}, after the addition", layer=layer, norm=name)
        elif sublayer := giver(self.trace.config, name):
            place = look_up(AFTER[sublayer], layer=layer, norm=name)
        else:
            place = look_up(BEFORE[readers(self.trace.config, name)], layer=layer, norm=name)
        told = place, _("divides by {divisor}", divisor=full(self.found.divisors[f"blocks.{layer}.{name}"]))
        return self.part("norm", lambda plan: plan.disc(*plan.norm(layer, name)), "residual", *told, layer=layer)

    def addition(self, layer: int, sublayers: tuple[str, ...]) -> Part:
        name, plan = f"add_{sublayers[0]}", self.plans[0]
        stage = plan.changes().index(plan.place(layer, name)) + 1
        before, after = (full(length) for length in self.found.stream[stage - 1 : stage + 1])
        told = look_up(ADDITIONS[sublayers], layer=layer), _("length {before} → {after}", before=before, after=after)
        return self.part(
            "addition", lambda plan: plan.disc(plan.place(layer, name), plan.stream), "residual", *told, layer=layer
        )

    def end(self) -> Iterator[Part]:
        config, parts = self.trace.config, self.found.parts
        if "final_norm" in self.found.divisors:
            divides = _("divides by {divisor}", divisor=full(self.found.divisors["final_norm"]))
            told = [_("final_norm, before the unembedding"), divides]
            if shifts.has_shifts(config):
                told.append(f"{shifts.words(config)}: {self.adds(parts.shift)}")
            yield self.part(
                "norm",
                lambda plan: plan.disc(plan.after("final_norm"), plan.stream),
                "residual",
                *told,
                layer=config.num_layers - 1,
            )
        told = _(
            "lm_head, the unembedding: {width} numbers become {size:,} logits",
            width=config.d_model,
            size=config.vocab_size,
        )
        yield self.part(
            "lm_head",
            lambda plan: plan.box((plan.after("lm_head"), plan.after("lm_head_end")), plan.lm_head),
            "prediction",
            told,
            f"{self.score} = {full(parts.logit)}",
            written="lm_head",
        )
        yield from map(self.next_token, range(len(self.listed)))

    def next_token(self, row: int) -> Part:
        told, selects, probability, _token = self.listed[row]
        return Part("next_token", self.boxes(lambda plan: plan.next_token(row)), told, selects, probability)
