"""The parts of a model on its map as data: boxes, labels, numbers, and what a click on each selects."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from explorer.analysis.direct_logit_attribution import ForwardPassOverview
from explorer.analysis.next_token import next_token_distribution, next_token_ranking, ranking_without_interventions
from explorer.analysis.residual import SUBLAYERS
from explorer.architecture.formulas import has_logit_bias_terms, logit_bias_terms_label
from explorer.architecture.residual_stream import (
    block_layout,
    normalised_sublayer,
    norms_on_residual_stream,
    output_norm,
    sublayers_reading,
)
from explorer.explain.captured.formulas import first_token_position
from explorer.explain.notation import format_six_digits
from explorer.state.selection import Selection
from explorer.tracing.trace import Trace
from explorer.translations import N_, _, translate
from explorer.views.overview.map_layout import Box, LandscapeLayout, MapLayout, PortraitLayout
from explorer.views.style import shorten_token


@dataclass(frozen=True)
class MapPart:
    """A part of the map: a component, an operation or a next token.

    Attributes:
        kind: "head", "norm", …; parts of a kind look alike.
        boxes: its edges on each sheet.
        hover_text: lines of plain text.
        selects: what a click on it selects, by the field of the selection; with "view" among them a tab opens.
        value: the number that its colour shows: its contribution to the logit or, for a next token, its
            probability.
        label: on it, lines of plain text.
        tap: the value that it computes, if it is one of the run's.
    """

    kind: str
    boxes: tuple[Box, ...]
    hover_text: str
    selects: Mapping[str, str | int]
    value: float | None = None
    label: str = ""
    tap: str = ""


@dataclass(frozen=True)
class MapLine:
    """A line on the map, along which a vector flows from one part to another.

    Attributes:
        kind: its source: "attention", "feed_forward", "embedding", or "residual" for the stream and its
            readers.
        corners: the x and y of each in turn.
        width: of the line.
        arrow: whether its end has an arrowhead.
    """

    kind: str
    corners: tuple[float, ...]
    width: float
    arrow: bool = False


@dataclass(frozen=True)
class MapLabel:
    """A text on the map.

    Attributes:
        x, y: its position; y is the middle of its height.
        text: plain.
        kind: "title", "token", "name" or "number"; "heading" of numbers, "sum" for contributions, "tick" for
            the ends of the colour scale, "apart" for the marker of the first difference.
        side: the part of the text that is at x: its "start", "middle" or "end".
    """

    x: float
    y: float
    text: str
    kind: str = "name"
    side: str = "middle"


@dataclass(frozen=True)
class MapArrangement:
    """One arrangement of the map, for wide or for narrow pages.

    Attributes:
        size: its width and height.
        lines: from the lowest to the uppermost; all are below the parts.
        labels: those besides the ones on parts.
        labelled_kinds: the kinds of parts that have room for their label.
        legend: for each kind of disc on the map, the kind and the edges of one.
        scale: edges of the colour bar.
    """

    size: tuple[float, float]
    lines: Sequence[MapLine]
    labels: Sequence[MapLabel]
    labelled_kinds: Sequence[str]
    legend: Sequence[tuple[str, Box]]
    scale: Box


@dataclass(frozen=True)
class ModelMap:
    """The map of a model: its parts, and their arrangements for wide and for narrow pages.

    Attributes:
        parts: in the order of the data flow.
        sheets: the arrangements for a wide and for a narrow page.
        largest: the value at the end of the colour scale, which is symmetric about 0.
        alt: alternative text, in a sentence.
    """

    parts: Sequence[MapPart]
    sheets: tuple[MapArrangement, MapArrangement]
    largest: float
    alt: str


MAX_LISTED = 5  # besides those chosen


class NextTokenBox(NamedTuple):
    """A next token in the list: hover text, what a click selects, probability and token."""

    hover_text: str
    selects: dict[str, int]
    probability: float
    token: str


def next_token_boxes(trace: Trace, selection: Selection) -> list[NextTokenBox]:
    """Return the most probable next tokens, and the chosen ones whatever their rank."""
    query = selection.query
    baseline_ranking, current_ranking = ranking_without_interventions(trace, query), next_token_ranking(trace, query)
    probabilities, logits = next_token_distribution(trace, query).plain, trace.logits.row(query)
    chosen_ids = {baseline_ranking[rank - 1] for rank in (selection.target, selection.rival) if rank}
    listed = []
    is_listed = np.isin(current_ranking, list(chosen_ids))
    is_listed[:MAX_LISTED] = True
    for index in np.flatnonzero(is_listed).tolist():
        token_id = current_ranking[index]
        token = trace.vocabulary[token_id]
        hover_text = _(
            "{token}: rank {rank:,}, probability {probability}\nlogit {logit}\nchoose it to explain it",
            token=shorten_token(token),
            rank=index + 1,
            probability=format_six_digits(probabilities[token_id]),
            logit=format_six_digits(logits[token_id]),
        )
        selects = {"target": int(np.flatnonzero(baseline_ranking == token_id)[0]) + 1}
        listed.append(NextTokenBox(hover_text, selects, float(probabilities[token_id]), token))
    return listed


NORM_BEFORE = {  # by the sublayers that read what a norm gives out
    ("attn",): N_("layer {layer} {norm}, before the attention"),
    ("ffn",): N_("layer {layer} {norm}, before the feed-forward"),
    ("attn", "ffn"): N_("layer {layer} {norm}, before the attention and the feed-forward"),
}
NORM_AFTER = {  # by the sublayer whose output a norm normalises
    "attn": N_("layer {layer} {norm}, after the attention"),
    "ffn": N_("layer {layer} {norm}, after the feed-forward"),
}
NORM_TEXTS = {  # of what o_proj gives, by whether a norm comes after it
    False: N_("of length {length}"),
    True: N_("of length {length} after its norm"),
}
ADDITIONS = {  # by the sublayers that are added
    ("attn",): N_("layer {layer}: the stream + what attention writes"),
    ("ffn",): N_("layer {layer}: the stream + what feed-forward writes"),
    ("attn", "ffn"): N_("layer {layer}: the stream + what attention writes + what feed-forward writes"),
}


@dataclass(frozen=True)
class MapPartBuilder:
    """All map parts of a run, in the order of the data flow.

    Attributes:
        overview: the numbers of the run at the query.
        score: name of the explained logit.
    """

    trace: Trace
    selection: Selection
    overview: ForwardPassOverview
    score: str

    def __iter__(self) -> Iterator[MapPart]:
        yield from self.embedding()
        for layer in range(self.trace.config.num_layers):
            yield from self.block(layer)
        yield from self.end()

    def block(self, layer: int) -> Iterator[MapPart]:
        """Yield the parts of a block.

        Each sublayer comes after the norm that it reads, if no other sublayer read that before, and before the
        norm of its output, if there is one. An addition follows its last summand, and is followed by the norm
        of the stream, if any.
        """
        layout, on_stream = block_layout(self.trace.config), norms_on_residual_stream(self.trace.config)
        sublayer_parts = {"attn": self.attention, "ffn": self.feed_forward}
        for sublayer in SUBLAYERS:
            norm_name = layout.reads[sublayer]
            if (
                norm_name in layout.norms
                and norm_name not in on_stream
                and sublayers_reading(self.trace.config, norm_name)[0] == sublayer
            ):
                yield self.norm(layer, norm_name)
            yield from sublayer_parts[sublayer](layer)
            if layout.writes[sublayer] in layout.norms:
                yield self.norm(layer, layout.writes[sublayer])
            yield from (self.addition(layer, *named) for named in layout.sums.items() if named[1][-1] == sublayer)
            yield from (self.norm(layer, norm) for norm in on_stream if norm.startswith(sublayer))

    @cached_property
    def next_tokens(self) -> list[NextTokenBox]:
        return next_token_boxes(self.trace, self.selection)

    @cached_property
    def layouts(self) -> tuple[LandscapeLayout, PortraitLayout]:
        """The landscape and the portrait layout."""
        return LandscapeLayout(self.trace.config, len(self.next_tokens)), PortraitLayout(
            self.trace.config, len(self.next_tokens)
        )

    def boxes(self, get_box: Callable[[MapLayout], Box]) -> tuple[Box, ...]:
        """Return a part's box in each layout."""
        return tuple(get_box(plan) for plan in self.layouts)

    def make_part(
        self,
        kind: str,
        get_box: Callable[[MapLayout], Box],
        view: str,
        *hover_lines: str,
        value: float | None = None,
        label: str = "",
        tap: str = "",
        **fields: int,
    ) -> MapPart:
        """Return a part with a box in each layout, whose click opens a view with these fields of the selection.

        Args:
            get_box: layout -> box.
            hover_lines: lines of the hover text.
            fields: of the selection.
        """
        return MapPart(kind, self.boxes(get_box), "\n".join(hover_lines), {"view": view} | fields, value, label, tap)

    def contribution_text(self, value: float) -> str:
        """Return the text of a contribution to the target's logit."""
        return _("adds {value} to {logit}", value=format_six_digits(value), logit=self.score)

    def embedding(self) -> Iterator[MapPart]:
        """Yield the parts of the embedding and the positions."""
        query, overview = self.selection.query, self.overview
        token, width = self.trace.tokens[query], self.trace.config.d_model
        text = _(
            "embedding of {token}: {width} numbers, length {length}",
            token=shorten_token(token),
            width=width,
            length=format_six_digits(overview.token),
        )
        text, label = (
            (text, self.contribution_text(overview.attribution.token)),
            "\n".join((shorten_token(token, 10), _("embedding"))),
        )
        yield self.make_part(
            "token", lambda plan: plan.box(plan.token, plan.beside_stream), "tokens", *text, label=label, tap="embed"
        )
        if "position_embed" in self.trace:
            position = first_token_position(self.trace) + query
            text = _(
                "vector of position {position}: {width} numbers, length {length}",
                position=position,
                width=width,
                length=format_six_digits(overview.positions),
            )
            yield self.make_part(
                "position",
                lambda plan: plan.box(plan.token, plan.position),
                "positions",
                text,
                self.contribution_text(overview.attribution.positions),
                label=_("position {position}", position=position),
                tap="position_embed",
            )
            text = _("embedding + position: length {length}", length=format_six_digits(overview.stream[0]))
            yield self.make_part(
                "addition",
                lambda plan: plan.disc(plan.position_added, plan.stream),
                "residual",
                text,
                tap="blocks.0.resid_pre",
                layer=0,
            )

    def attention(self, layer: int) -> Iterator[MapPart]:
        """Yield the parts of a layer's attention."""
        overview, config = self.overview, self.trace.config
        if config.has_rope(layer):
            text = _("layer {layer}: every head’s q and k are rotated by the angles of their positions", layer=layer)
            yield self.make_part(
                "rotation",
                lambda plan: plan.disc(plan.heads_centre(layer), plan.rotary),
                "positions",
                text,
                tap=f"blocks.{layer}.attn.q_rot",
                layer=layer,
            )
        for head in range(config.num_heads):
            yield self.head(layer, head)
        bias = f"blocks.{layer}.attn.o_proj.bias" in self.trace.weights
        yield self.make_part(
            "o_proj",
            lambda plan: plan.box(plan.span(layer, "o_proj"), plan.o_proj),
            "attention",
            _("layer {layer} o_proj: what all heads fetched becomes one vector", layer=layer),
            translate(
                NORM_TEXTS[output_norm(config, layer, "attn") is not None],
                length=format_six_digits(overview.write_norms[layer, 0]),
            ),
            self.contribution_text(overview.logit_effects[layer, 0]),
            *(
                [_("(of this its bias {value})", value=format_six_digits(overview.attribution.biases[layer]))]
                if bias
                else []
            ),
            label="o_proj",
            tap=f"blocks.{layer}.attn.out",
            layer=layer,
        )

    def head(self, layer: int, head: int) -> MapPart:
        """Return the part of a head, coloured by its contribution."""
        value = self.overview.attribution.heads[layer, head]
        return self.make_part(
            "head",
            lambda plan: plan.head(layer, head),
            "attention",
            _("layer {layer} head {head}", layer=layer, head=head),
            _(
                "writes a vector of length {length}",
                length=format_six_digits(self.overview.head_write_norms[layer, head]),
            ),
            self.contribution_text(value),
            value=float(value),
            label=str(head),
            tap=f"blocks.{layer}.attn.z",
            layer=layer,
            head=head,
        )

    def feed_forward(self, layer: int) -> Iterator[MapPart]:
        """Yield the parts of a layer's feed-forward."""
        yield self.make_part(
            "feed_forward",
            lambda plan: plan.box(plan.span(layer, "feed_forward"), plan.feed_forward),
            "feed_forward",
            _("layer {layer} feed-forward, {neurons:,} neurons", layer=layer, neurons=self.trace.config.d_ff),
            _("writes a vector of length {length}", length=format_six_digits(self.overview.write_norms[layer, 1])),
            self.contribution_text(self.overview.logit_effects[layer, 1]),
            value=float(self.overview.logit_effects[layer, 1]),
            label=_("feed-forward"),
            tap=f"blocks.{layer}.ffn.out",
            layer=layer,
        )

    def norm(self, layer: int, name: str) -> MapPart:
        """Return the part of a layer's norm."""
        if name in norms_on_residual_stream(self.trace.config):
            location = _("layer {layer} {norm}, after the addition", layer=layer, norm=name)
        elif sublayer := normalised_sublayer(self.trace.config, name):
            location = translate(NORM_AFTER[sublayer], layer=layer, norm=name)
        else:
            location = translate(NORM_BEFORE[sublayers_reading(self.trace.config, name)], layer=layer, norm=name)
        tap = f"blocks.{layer}.{name}"
        lines = location, _("divides by {divisor}", divisor=format_six_digits(self.overview.divisors[tap]))
        return self.make_part(
            "norm", lambda plan: plan.disc(*plan.norm(layer, name)), "residual", *lines, tap=tap, layer=layer
        )

    def addition(self, layer: int, value_name: str, sublayers: tuple[str, ...]) -> MapPart:
        """Return the part at which sublayers are added to the stream, which gives a value of the block."""
        name, plan = f"add_{sublayers[0]}", self.layouts[0]
        stage = plan.change_offsets().index(plan.offset(layer, name)) + 1
        before, after = (format_six_digits(length) for length in self.overview.stream[stage - 1 : stage + 1])
        lines = translate(ADDITIONS[sublayers], layer=layer), _("length {before} → {after}", before=before, after=after)
        return self.make_part(
            "addition",
            lambda plan: plan.disc(plan.offset(layer, name), plan.stream),
            "residual",
            *lines,
            tap=f"blocks.{layer}.{value_name}",
            layer=layer,
        )

    def end(self) -> Iterator[MapPart]:
        """Yield the parts after the last block: the final norm, the unembedding and the prediction."""
        config, contributions = self.trace.config, self.overview.attribution
        if "final_norm" in self.overview.divisors:
            divides = _("divides by {divisor}", divisor=format_six_digits(self.overview.divisors["final_norm"]))
            text = [_("final_norm, before the unembedding"), divides]
            if has_logit_bias_terms(config):
                text.append(f"{logit_bias_terms_label(config)}: {self.contribution_text(contributions.shift)}")
            yield self.make_part(
                "norm",
                lambda plan: plan.disc(plan.offset_after_blocks("final_norm"), plan.stream),
                "residual",
                *text,
                tap="final_norm",
                layer=config.num_layers - 1,
            )
        text = _(
            "lm_head, the unembedding: {width} numbers become {size:,} logits",
            width=config.d_model,
            size=config.vocab_size,
        )
        yield self.make_part(
            "lm_head",
            lambda plan: plan.box(
                (plan.offset_after_blocks("lm_head"), plan.offset_after_blocks("lm_head_end")), plan.lm_head
            ),
            "prediction",
            text,
            f"{self.score} = {format_six_digits(contributions.logit)}",
            label="lm_head",
            tap="logits",
        )
        yield from map(self.next_token, range(len(self.next_tokens)))

    def next_token(self, row: int) -> MapPart:
        """Return the part of one of the likeliest next tokens."""
        hover_text, selects, probability, _token = self.next_tokens[row]
        return MapPart("next_token", self.boxes(lambda plan: plan.next_token(row)), hover_text, selects, probability)
