from collections import Counter
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer.analysis.attribution import attribution
from explorer.analysis.next_token import next_token, ranking
from explorer.analysis.overview import overview
from explorer.analysis.residual import updates
from explorer.explain.notation import full, number
from explorer.state.selection import Selection
from explorer.views import VIEWS
from explorer.views.overview import VIEW, map_of, sum_of
from explorer.views.overview import wide as at
from explorer.views.overview.diagram import Diagram, Line, Part
from explorer.views.overview.parts import Parts
from explorer.views.overview.plan import Box
from explorer.views.overview.tall import Tall
from explorer.views.overview.wide import Wide
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL
from tests import layouts

SELECTION = Selection(layer=1, head=2, query=9, target=2)


@pytest.fixture
def token_id(trace) -> int:
    return int(ranking(trace, SELECTION.query)[SELECTION.target - 1])


@pytest.fixture
def found(trace, token_id):
    return overview(trace, SELECTION.query, token_id)


@pytest.fixture
def diagram(trace) -> Diagram:
    return map_of(trace, SELECTION)


@pytest.fixture
def parts(diagram) -> list[Part]:
    return list(diagram.parts)


@pytest.fixture
def plan(trace) -> Wide:
    return Wide(trace.config, 5)


@pytest.fixture
def post(trace) -> bool:
    return trace.config.norm_placement == "post"


def centre(part: Part) -> tuple[float, float]:
    """On a wide page."""
    left, upper, right, lower = part.boxes[0]
    return (left + right) / 2, (upper + lower) / 2


def test_every_part_of_every_block_is_drawn(trace, parts):
    config = trace.config
    layers, added = config.num_layers, config.position in ("sinusoidal", "learned")
    assert Counter(part.kind for part in parts) == Counter(
        token=1,
        position=added,
        addition=len(layouts.sums(config)) + added,
        norm=len(layouts.norms(config)) + (config.norm_placement != "post"),
        rotation=sum(config.rotates(layer) for layer in range(layers)),
        head=layers * config.num_heads,
        o_proj=layers,
        feed_forward=layers,
        lm_head=1,
        next_token=5,
    )


@pytest.mark.parametrize("kind", [Wide, Tall])
def test_every_part_stands_where_it_belongs(trace, diagram, parts, kind):
    """Each kind in its row across the data's way, and those of a layer between the edges of its block along it."""
    sheet, plan = [Wide, Tall].index(kind), kind(trace.config, 5)
    rows = {name: getattr(plan, name) for name in ("heads", "o_proj", "feed_forward", "position", "lm_head")}
    rows |= {"head": rows["heads"], "token": plan.beside_stream, "rotation": (plan.rotary - 11, plan.rotary + 11)}
    for part in parts:
        left, upper, right, lower = part.boxes[sheet]
        width, height = diagram.sheets[sheet].size
        assert 0 <= left < right <= width and 0 <= upper < lower <= height
        first, near, last, far = along_and_across(part.boxes[sheet], kind)
        if part.kind in rows:
            assert rows[part.kind][0] <= near and far <= rows[part.kind][1] + 1e-9
        if part.kind == "addition":
            assert (near + far) / 2 == pytest.approx(plan.stream)
        layer = part.selects.get("layer")
        if layer is not None and plan.start <= (first + last) / 2 <= plan.end:
            assert plan.at(layer, 0) - 1e-9 <= first and last <= plan.at(layer, 1) + 1e-9
    for part in parts:
        if part.kind == "head":
            assert part.boxes[sheet] == plan.head(part.selects["layer"], part.selects["head"])
            assert part.written == str(part.selects["head"])
    for way in (("token", "o_proj", "lm_head"), ("token", "addition", "lm_head")):
        ends = [along_and_across(part.boxes[sheet], kind)[::2] for part in parts if part.kind in way]
        assert all(a[1] < b[0] for a, b in pairwise(ends))


def along_and_across(box: Box, kind: type) -> Box:
    """From and to where along the data's way, and across it: to the right on a wide page, down on a narrow one."""
    left, upper, right, lower = box
    return box if kind is Wide else (upper, left, lower, right)


def test_a_click_selects_what_there_is(trace, parts):
    names = {view.name for view in VIEWS}
    numbers = {field.name for field in fields(Selection) if field.type is int}
    for part in parts:
        clicked = replace(SELECTION, **part.selects)
        assert clicked == clicked.within(trace) and clicked.view in names
        assert set(part.selects) - {"view"} <= numbers


def test_a_click_leads_to_the_parts_own_tab(trace, parts):
    tabs = {
        "token": "tokens",
        "position": "positions",
        "norm": "residual",
        "addition": "residual",
        "rotation": "positions",
        "head": "attention",
        "o_proj": "attention",
        "feed_forward": "feed_forward",
        "lm_head": "prediction",
        "next_token": "overview",
    }
    assert all(part.selects.get("view", "overview") == tabs[part.kind] for part in parts)
    layers, per_layer = range(trace.config.num_layers), range(trace.config.num_heads)
    chosen = {kind: [without_view(part) for part in parts if part.kind == kind] for kind in tabs}
    assert chosen["head"] == [{"layer": layer, "head": head} for layer in layers for head in per_layer]
    for kind in ("o_proj", "feed_forward"):
        assert chosen[kind] == [{"layer": layer} for layer in layers]
    assert chosen["rotation"] == [{"layer": layer} for layer in layers if trace.config.rotates(layer)]
    assert [*chosen["token"], *chosen["lm_head"]] == [{}, {}]
    assert chosen["next_token"] == [{"target": rank} for rank in range(1, 6)]


def without_view(part: Part) -> dict[str, int]:
    return {field: value for field, value in part.selects.items() if field != "view"}


BLOCKS = {  # where norms stand -> the parts of a block in their order
    "pre": ["norm", "o_proj", "addition", "norm", "feed_forward", "addition"],
    "post": ["o_proj", "addition", "norm", "feed_forward", "addition", "norm"],
    "parallel": ["norm", "o_proj", "norm", "feed_forward", "addition"],
    "output": ["o_proj", "norm", "addition", "feed_forward", "norm", "addition"],
    "sandwich": ["norm", "o_proj", "norm", "addition", "norm", "feed_forward", "norm", "addition"],
    "shared": ["norm", "o_proj", "feed_forward", "addition"],
}


def test_the_norm_sits_where_it_sits(plan, parts, post):
    """Between an addition and the next block's read if post-norm, else on the way into its sublayer or out of it."""
    norms = [part for part in parts if part.kind == "norm"]
    ends = [part for part in norms if centre(part)[1] == at.STREAM]
    assert len(ends) == (len(norms) if post else 1)
    order = [part.kind for part in parts if part.kind not in ("head", "rotation", "next_token")]
    block = BLOCKS[plan.config.norm_placement]
    first = order.index(block[0], order.index("token") + 1)
    last = first + 2 * len(block)
    assert order[first:last] == block * 2
    assert order[last:] == ([] if post else ["norm"]) + ["lm_head"]
    for layer in range(plan.config.num_layers):
        for name in layouts.NORMS[plan.config.norm_placement]:
            x, y = plan.norm(layer, name)
            sublayer = name.split("_")[0]
            read, added = (plan.place(layer, f"{what}_{sublayer}") for what in ("read", "add"))
            assert read < added
            shared = plan.config.norm_placement == "shared"  # where it reads, and then where both branch off
            assert (y == at.STREAM) is post
            if layouts.output_norm(plan.config, sublayer) == name:
                assert x == added and (plan.o_proj[1] < y < at.STREAM or at.STREAM < y < plan.feed_forward[0])
                continue
            assert added < x if post else x < read if shared else x == read
    assert plan.changes() == sorted(plan.changes())


def test_heads_and_feed_forwards_are_coloured_by_what_they_add(trace, diagram, parts, token_id):
    taken = attribution(trace, SELECTION.query, token_id)
    values = {kind: [part.value for part in parts if part.kind == kind] for kind in ("head", "feed_forward")}
    assert_allclose(values["head"], taken.heads.ravel())
    assert_allclose(values["feed_forward"], taken.feed_forward)
    assert diagram.largest == max(np.abs(taken.heads).max(), np.abs(taken.feed_forward).max())
    assert {part.kind for part in parts if part.value is not None} == {"head", "feed_forward", "next_token"}


def test_the_colours_and_the_discs_are_explained(trace, diagram):
    least, most = f"−{number(diagram.largest)}", f"+{number(diagram.largest)}"
    for sheet in diagram.sheets:
        left, _, right, lower = sheet.scale
        ticks = {word.x: word.text for word in sheet.words if word.y == lower + 8}
        assert ticks == {left: least, (left + right) / 2: "0", right: most}
        beside = [
            [word.text for word in sheet.words if (word.x, word.y) == (box[2] + 12, box[3] - 7)]
            for _, box in sheet.legend
        ]
        assert beside == [[kind] for kind, _ in sheet.legend]
        assert sum(beside, []) == ["norm", "addition"] + ["rotation"] * (trace.config.position == "rope")


def test_the_map_has_the_numbers_of_each_sublayer(trace, found, diagram):
    rows = {}
    for word in diagram.sheets[0].words:
        if word.x > at.LEFT:
            rows.setdefault(word.y, []).append(word.text)
    lengths = updates(trace, SELECTION.query).lengths.reshape(-1, 2)
    assert rows[at.TITLES] == [f"layer {layer}" for layer in range(trace.config.num_layers)]
    assert rows[at.ATTENTION_WRITES] == [number(length) for length in lengths[:, 0]]
    assert rows[at.FEED_FORWARD_WRITES] == [number(length) for length in lengths[:, 1]]
    assert [text.lstrip("+") for text in rows[at.ATTENTION_ADDS]] == [number(value) for value in found.adds[:, 0]]
    assert [text.lstrip("+") for text in rows[at.FEED_FORWARD_ADDS]] == [number(value) for value in found.adds[:, 1]]
    per_block = (len(found.stream) - 1) // trace.config.num_layers
    assert rows[at.STREAM_LENGTHS] == [number(length) for length in found.stream[::per_block]]


def test_the_map_of_a_narrow_page_has_the_same_numbers_in_each_block(trace, found, diagram):
    plan, per_block = Tall(trace.config), (len(found.stream) - 1) // trace.config.num_layers
    for layer in range(trace.config.num_layers):
        words = [word for word in diagram.sheets[1].words if plan.at(layer, 0) < word.y < plan.at(layer, 1)]
        left, right = ([word.text for word in words if (word.x > plan.stream) is side] for side in (False, True))
        attention, feed_forward = (
            [f"adds {'+' if adds > 0 else ''}{number(adds)}", f"length {number(writes)}"]
            for adds, writes in zip(found.adds[layer], found.writes[layer], strict=True)
        )
        assert left == [f"layer {layer}", "attention", *attention]
        assert right == [*feed_forward, f"‖x‖₂ {number(found.stream[layer * per_block])}"]
    last = [word.text for word in diagram.sheets[1].words if word.text.startswith("‖x‖₂")][-1]
    assert last == f"‖x‖₂ {number(found.stream[-1])}"


def test_all_of_a_number_is_told_of_every_part(trace, found, parts):
    told = {kind: [part.told for part in parts if part.kind == kind] for kind in ("head", "o_proj", "feed_forward")}
    places = list(np.ndindex(found.parts.heads.shape))
    for (layer, head), text in zip(places, told["head"], strict=True):
        length, adds = found.head_writes[layer, head], found.parts.heads[layer, head]
        assert text.startswith(
            f"layer {layer} head {head}\nwrites a vector of length {full(length)}\nadds {full(adds)} to"
        )
    for layer, texts in enumerate(zip(told["o_proj"], told["feed_forward"], strict=True)):
        for text, name, length, adds in zip(
            texts, ("o_proj", "feed-forward"), found.writes[layer], found.adds[layer], strict=True
        ):
            assert text.startswith(f"layer {layer} {name}")
            normed = " after its norm" * (name == "o_proj" and layouts.output_norm(trace.config, "attn") is not None)
            assert f"of length {full(length)}{normed}\nadds {full(adds)} to the logit of " in text
        bias = f"(of this its bias {full(found.parts.biases[layer])})"
        assert (bias in texts[0]) is trace.config.bias
    divisors = [part.told.partition("divides by ")[2].partition("\n")[0] for part in parts if part.kind == "norm"]
    assert divisors == list(map(full, found.divisors.values()))
    lengths = [part.told.rpartition("length ")[2] for part in parts if part.kind == "addition"]
    added = trace.config.position in ("sinusoidal", "learned")
    post = trace.config.norm_placement == "post"
    ends = [pair for i, pair in enumerate(pairwise(found.stream)) if not post or i % 2 == 0]
    assert lengths == [full(found.stream[0])] * added + [f"{full(a)} → {full(b)}" for a, b in ends]


@pytest.mark.parametrize("kind", [Wide, Tall])
def test_lines_are_as_thick_as_vectors_are_long(trace, found, diagram, kind):
    """Where they lead says whose they are."""
    plan, sheet = kind(trace.config), diagram.sheets[[Wide, Tall].index(kind)]
    longest = max(found.stream.max(), found.writes.max(), found.token, found.positions)

    def widths(lengths) -> np.ndarray:
        return np.maximum(1, plan.thickest * np.asarray(lengths) / longest)

    flows = [line for line in sheet.lines if not line.arrow]
    layers = range(plan.config.num_layers)
    for name, sublayer, column in (("attention", "attn", 0), ("feed_forward", "ffn", 1)):
        lines = [line for line in flows if line.kind == name]
        assert [ends(line, kind)[1] for line in lines] == [
            (plan.place(layer, f"add_{sublayer}"), plan.stream) for layer in layers
        ]
        assert_allclose([line.width for line in lines], widths(found.writes[:, column]))
    stream = [line for line in flows if line.kind == "residual"]
    assert_allclose([line.width for line in stream], widths(found.stream))
    assert all(ends(a, kind)[1] == ends(b, kind)[0] for a, b in pairwise(stream))
    assert [ends(line, kind)[0][0] for line in stream[1:]] == plan.changes()
    added = plan.position_added, plan.stream
    first = [line for line in flows if line.kind == "embedding" and ends(line, kind)[1] == added]
    assert_allclose([line.width for line in first], widths([found.positions, found.token] if found.positions else []))


def ends(line: Line, kind: type) -> tuple[tuple[float, float], tuple[float, float]]:
    """How far along and across."""
    first, last = line.corners[:2], line.corners[-2:]
    return (first, last) if kind is Wide else (first[::-1], last[::-1])


@pytest.mark.parametrize("kind", [Wide, Tall])
def test_arrows_say_what_is_read(trace, diagram, post, kind):
    """Heads and feed-forward of the stream, o_proj of the heads, and the angles by the heads."""
    plan = kind(trace.config)
    read = {ends(line, kind) for line in diagram.sheets[[Wide, Tall].index(kind)].lines if line.arrow}
    for layer in range(plan.config.num_layers):
        begins = {name: (plan.place(layer, name), plan.stream) for name in ("read_attn", "read_ffn")}
        if plan.config.norm_placement == "shared":  # both read what the norm beside the stream gives out
            norm = plan.norm(layer, "attn_norm")
            read.remove(((norm[0], plan.stream), norm))
            begins = dict.fromkeys(begins, norm)
        begins["add_attn"] = plan.place(layer, "add_attn"), plan.heads[1]
        for name, end in (
            ("read_attn", plan.heads[1]),
            ("add_attn", plan.o_proj[0]),
            ("read_ffn", plan.feed_forward[0]),
        ):
            read.remove((begins[name], (plan.place(layer, name), end)))
        for sublayer, end in (("attn", plan.o_proj[1]), ("ffn", plan.feed_forward[0])):
            if name := layouts.output_norm(plan.config, sublayer):
                read.remove(((plan.place(layer, f"add_{sublayer}"), end), plan.norm(layer, name)))
        if plan.config.rotates(layer):
            read.remove(((plan.middle(layer), plan.rotary), (plan.middle(layer), plan.heads[0])))
    assert {end[0] for _, end in read} == {plan.after("list") - 3, *([] if post else [plan.after("lm_head")])}


def test_probabilities_of_next_tokens_and_of_those_chosen(trace):
    selection = replace(SELECTION, target=8, rival=20)
    listed = [part for part in Parts(trace, selection, overview(trace, 9, 1, 2), "") if part.kind == "next_token"]
    ranks = [1, 2, 3, 4, 5, 8, 20]
    assert [part.selects for part in listed] == [{"target": rank} for rank in ranks]
    order, plain, logits = ranking(trace, 9), next_token(trace, 9).plain, trace["logits"][9]
    assert_allclose([part.value for part in listed], [plain[order[rank - 1]] for rank in ranks])
    for rank, part in zip(ranks, listed, strict=True):
        chance, logit = full(plain[order[rank - 1]]), full(logits[order[rank - 1]])
        assert f": rank {rank}, probability {chance}\nlogit {logit}\n" in part.told
    for sheet in (0, 1):
        rows = [part.boxes[sheet][1] for part in listed]
        assert rows == sorted(rows)


def test_the_running_sum_goes_from_nothing_to_the_logit(trace, found, token_id):
    bars = sum_of(trace, SELECTION).data[0]
    starts, values = np.array(bars.base), np.array(bars.y)
    assert starts[0] == 0
    assert_allclose(starts[1:-1], (starts + values)[:-2], atol=1e-9)
    assert starts[-1] == 0
    assert values[-1] == pytest.approx(trace["logits"][SELECTION.query, token_id], abs=1e-4)
    assert values[:-1].sum() == pytest.approx(values[-1])
    added, shifted = trace.config.position in ("sinusoidal", "learned"), trace.config.norm == "layernorm"
    sublayers = [ATTENTION, FEED_FORWARD] * trace.config.num_layers
    assert list(bars.marker.color) == [EMBEDDING] * (1 + added) + sublayers + [NORM] * shifted + [RESIDUAL]
    assert_allclose(values[1 + added : 1 + added + len(sublayers)], found.adds.ravel())
    assert list(bars.x) == sorted(bars.x)


def test_each_step_of_the_running_sum_is_below_its_part(trace, diagram, parts):
    """In pixels, too: both pictures are as wide as their panel and nothing else."""
    fig, panels = sum_of(trace, SELECTION), {panel.name: panel for panel in VIEW.panels}
    token, *additions = (centre(part)[0] for part in parts if part.kind in ("token", "addition"))
    end = [centre(part)[0] for part in parts if part.kind == "norm"][-1:] * (trace.config.norm == "layernorm")
    if trace.config.norm_placement == "post":
        end = [Wide(trace.config).after("final_norm")] * (trace.config.norm == "layernorm")
    (last,) = (centre(part)[0] for part in parts if part.kind == "lm_head")
    if trace.config.norm_placement in ("parallel", "shared"):  # two bars on either side of where both are added
        first = 1 + (trace.config.position == "learned")
        assert_allclose(fig.data[0].x[:first], [token, *additions][:first])
        *pairs, drawn_end, drawn_last = fig.data[0].x[first:]
        assert_allclose(np.reshape(pairs, (-1, 2)).mean(1), [token, *additions][first:])
        assert (np.diff(pairs) > fig.data[0].width).all() and (drawn_end, drawn_last) == (*end, last)
    else:
        assert_allclose(fig.data[0].x, [token, *additions, *end, last])
    assert tuple(fig.layout.xaxis.range) == (0, diagram.sheets[0].size[0])
    assert (fig.layout.margin.l, fig.layout.margin.r) == (0, 0)
    assert fig.layout.xaxis.automargin == "height" and fig.layout.yaxis.automargin is False
    assert panels["map"].min_width == panels["sum"].min_width == at.WIDTH
    assert (at.WIDTH, panels["map"].height) == diagram.sheets[0].size


def test_of_a_rival_the_lead_is_explained(rope_trace):
    selection = replace(SELECTION, rival=5)
    for sheet, times in zip(map_of(rope_trace, selection).sheets, (3, 1), strict=True):
        words = [word.text for word in sheet.words]
        assert words.count("adds to the lead") == times and "adds to the logit" not in words
    order, logits = ranking(rope_trace, 9), rope_trace["logits"][9]
    lead = logits[order[1]] - logits[order[4]]
    assert sum_of(rope_trace, selection).data[0].y[-1] == pytest.approx(lead, abs=1e-4)
    assert f"captured {number(lead)}, " in VIEW.formula(rope_trace, selection)


def test_the_formula_adds_up(trace, found, token_id, post):
    formula = VIEW.formula(trace, SELECTION)
    attention, feed_forward = found.adds.sum(0)
    assert f"attention {number(attention)} + feed-forward {number(feed_forward)}" in formula
    assert f"= {number(found.parts.total)}   captured {number(found.parts.logit)}, off by " in formula
    assert f"‖x‖₂ = {number(found.stream[0])} → {number(found.stream[-1])}" in formula
    assert f"= {number(next_token(trace, SELECTION.query).plain[token_id])}, rank 2" in formula
    assert ("through a norm" in formula) is post
