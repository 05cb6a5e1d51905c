"""The pictures of patching as the browser shows them: what each cell, dot and bar is, says and does."""

import html
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explorer import activation_patching, attribution_patching, capture, path_patching
from explorer.explain.notation import added, number
from explorer.explain.point import Point
from explorer.state.errors import NoSuchPoint
from explorer.state.selection import Selection
from explorer.tracing.comparison import Comparison
from explorer.views.patching import VIEW, formula
from explorer.views.style import positions
from explorer.views.two_runs.difference import Incomparable
from tests.drawn import Picture, picture_of, tells
from tests.specimens import tokenizer

PANEL = {panel.name: panel for panel in VIEW.panels}
BY_POSITION = ("positions_denoise", "positions_noise", "estimate_positions")
BY_HEAD = ("heads_denoise", "heads_noise", "estimate", "paths")
CHOSEN = {"layer": 1, "head": 2, "query": 9, "key": 4, "receiver": "q"}
INTO = {"denoise": "clean into corrupted", "noise": "corrupted into clean"}


@dataclass(frozen=True)
class Two:
    """A comparison, and which values are to be seen in it."""

    runs: Comparison
    lm: object

    def picture(self, name: str, **chosen) -> Picture:
        return picture_of(PANEL[name], PANEL[name].draw(self.runs, self.selection(**chosen)))

    def selection(self, **chosen) -> Selection:
        return Selection(**CHOSEN | chosen).within(self.runs.trace)

    def expected(self, of, clean_run: str = "b", metric: str = "logit_difference", **asked) -> np.ndarray:
        """By the functions that programs call."""
        a, b = self.runs.trace, self.runs.other
        clean, corrupted = (a, b) if clean_run == "a" else (b, a)
        answer = int(clean["logits"][-1].argmax())
        wrong = next(int(i) for i in np.argsort(-corrupted["logits"][-1], kind="stable") if i != answer)
        return of(self.lm, clean.token_ids, corrupted.token_ids, answer, wrong, metric=metric, **asked)


@pytest.fixture
def two(lms, style, trace_of) -> Two:
    trace = trace_of(style)
    ids = (*trace.token_ids[:5], 70, *trace.token_ids[6:])
    return Two(Comparison.of(trace, capture(lms[style], ids, tokenizer=tokenizer())), lms[style])


def near(value: float):
    """Equal but for rounding: small models’ runs differ by little, of which effects are shares."""
    return pytest.approx(value, rel=2e-3, abs=2e-3)


def shown(picture: Picture) -> np.ndarray:
    (heatmap,) = picture.parts
    return np.array(heatmap["z"], dtype=float)


@pytest.mark.parametrize("clean_run", "ab")
@pytest.mark.parametrize("name", BY_POSITION)
def test_a_cell_of_a_position_says_where_it_is_and_selects_it(two, name, clean_run):
    picture = two.picture(name, clean_run=clean_run)
    tokens = (two.runs.trace if clean_run == "a" else two.runs.other).tokens
    values = shown(picture)
    assert values.shape == (2, 12) and picture.layout["meta"]["of"] == clean_run
    assert "token of the clean prompt" in picture.title("x") and picture.title("y") == "layer"
    for p in picture.points():
        layer, place = int(p.y), int(p.x)
        assert f"layer {layer}, position {positions(tokens)[place]}\n" in p.told
        assert tells(p.told, values[layer, place]) and p.change == {"query": place, "layer": layer}
    (frame,) = picture.layout["shapes"]
    assert [frame[side] for side in ("x0", "x1", "y0", "y1")] == [8.5, 9.5, 0.5, 1.5]


@pytest.mark.parametrize("name", BY_HEAD)
def test_a_cell_of_a_head_says_which_it_is_and_selects_it(two, name):
    picture = two.picture(name)
    values = shown(picture)
    assert picture.title("x") == "head" and picture.title("y") == "layer" and "of" not in picture.layout["meta"]
    seen = picture.points()
    assert len(seen) == np.isfinite(values).sum()
    for p in seen:
        layer, head = int(p.y), int(p.x)
        assert f"layer {layer} head {head}\n" in p.told and tells(p.told, values[layer, head])
        assert p.change == {"head": head, "layer": layer}
    frames = [shape for shape in picture.layout.get("shapes", ()) if shape["type"] == "rect"]
    assert [[frame[side] for side in ("x0", "x1", "y0", "y1")] for frame in frames] == (
        [] if name == "paths" else [[1.5, 2.5, 0.5, 1.5]]
    )
    written = picture.parts[0]["text"]
    assert written == [[added(value) if np.isfinite(value) else "" for value in row] for row in values]


@pytest.mark.parametrize("name", (*BY_POSITION, *BY_HEAD))
def test_no_effect_has_no_colour_and_the_scale_is_as_far_both_ways(two, name):
    (heatmap,) = two.picture(name).parts
    largest = np.nanmax(np.abs(np.array(heatmap["z"], dtype=float)))
    assert (-heatmap["zmin"], heatmap["zmax"]) == (pytest.approx(largest), pytest.approx(largest))


@pytest.mark.parametrize("direction", INTO)
@pytest.mark.parametrize("metric", ["logit_difference", "log_probability"])
@pytest.mark.parametrize(
    ("name", "field", "part"),
    [("estimate", "patch_head", "attn.q"), ("estimate_positions", "patch_position", "ffn.out")],
)
def test_an_estimate_is_that_of_the_chosen_direction_and_metric(two, name, field, part, direction, metric):
    chosen = {field: part, "patch_direction": direction, "metric": metric}
    expected = two.expected(attribution_patching, part=part, direction=direction, metric=metric)
    assert_allclose(shown(two.picture(name, **chosen)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("direction", INTO)
@pytest.mark.parametrize("receiver", ["logits", "q", "v"])
def test_paths_are_those_to_the_chosen_receiver(two, direction, receiver):
    config = two.runs.trace.config
    shared = 2 * config.kv_heads // config.num_heads
    asked = receiver if receiver == "logits" else (1, 2 if receiver == "q" else shared, receiver)
    expected = two.expected(path_patching, receiver=asked, direction=direction)
    picture = two.picture("paths", receiver=receiver, patch_direction=direction)
    last = 2 if receiver == "logits" else 1
    assert_allclose(shown(picture)[:last], expected[:last], atol=1e-4)
    assert np.isnan(shown(picture)[last:]).all()
    alt = picture.layout["meta"]["alt"]
    name = "the logits" if receiver == "logits" else f"{receiver} of head {asked[1]} of layer 1"
    assert f"direct paths to {name}, {INTO[direction]}" in alt and f"direct paths to {name}:" in formula(
        two.runs, two.selection(receiver=receiver)
    )


@pytest.mark.parametrize("receiver", "kv")
def test_a_receiver_of_shared_keys_is_the_one_that_the_chosen_head_shares(lms, trace_of, receiver):
    """Of six heads two share each of three keys and values."""
    trace = trace_of("grouped")
    ids = (*trace.token_ids[:5], 70, *trace.token_ids[6:])
    two = Two(Comparison.of(trace, capture(lms["grouped"], ids, tokenizer=tokenizer())), lms["grouped"])
    expected = [two.expected(path_patching, receiver=(1, shared, receiver))[0] for shared in range(3)]
    assert min(np.abs(one - other).max() for one, other in combinations(expected, 2)) > 1e-3
    for head in range(6):
        chosen = {"receiver": receiver, "head": head}
        assert_allclose(shown(two.picture("paths", **chosen))[0], expected[head // 2], atol=1e-4)
        told = PANEL["paths"].inspect(two.runs, two.selection(**chosen), Point(x=4, y=0))
        assert told.recomputed == near(expected[head // 2][4])
        words = f"direct paths to {receiver} of head {head // 2} of layer 1"
        assert words in formula(two.runs, two.selection(**chosen))


@pytest.mark.parametrize("name", [*BY_POSITION, *BY_HEAD])
@pytest.mark.parametrize("direction", INTO)
def test_the_alternative_names_the_largest_effect_and_the_way(two, name, direction):
    picture = two.picture(name, patch_direction=direction, receiver="logits")
    alt, values = picture.layout["meta"]["alt"], np.nan_to_num(shown(picture))
    layer, column = np.unravel_index(np.abs(values).argmax(), values.shape)
    assert f"the largest effect is {number(values[layer, column])}, of layer {layer}, column {column}." in alt
    own = name.partition("_")[2] if name.partition("_")[2] in INTO else direction
    assert INTO[own] in alt


@pytest.mark.parametrize(("name", "part"), [("agreement", "attn.z"), ("agreement_positions", "resid_pre")])
@pytest.mark.parametrize("direction", INTO)
def test_a_dot_is_a_node_with_what_it_is_and_what_is_estimated(two, name, part, direction):
    picture = two.picture(name, patch_direction=direction)
    exact, estimate = (
        two.expected(of, part=part, direction=direction) for of in (activation_patching, attribution_patching)
    )
    diagonal, dots = picture.parts
    ends = min(exact.min(), estimate.min()), max(exact.max(), estimate.max())
    assert_allclose([diagonal["x"], diagonal["y"]], [ends, ends], rtol=1e-3, atol=1e-4)
    assert (picture.title("x"), picture.title("y")) == ("exact effect", "estimated effect")
    places = positions(two.runs.other.tokens)
    for p in picture.points():
        layer, column = divmod(p.item, exact.shape[1])
        assert (p.x, p.y) == (near(exact[layer, column]), near(estimate[layer, column]))
        node = f"layer {layer}, {places[column]}" if part == "resid_pre" else f"layer {layer} head {column}"
        assert html.unescape(p.told).startswith(node + "\n")
        first, second = p.told.split("exact ")[1].split(", estimated ")
        assert tells(first, p.x) and tells(second, p.y)
    (words,) = [note["text"] for note in picture.layout["annotations"]]
    correlation = np.corrcoef(exact.ravel(), estimate.ravel())[0, 1]
    assert tells(words.split("<br>")[0], correlation)
    layer, column = np.unravel_index(np.abs(estimate - exact).argmax(), exact.shape)
    worst = f"layer {layer}, {places[column]}" if part == "resid_pre" else f"layer {layer} head {column}"
    assert words.split("<br>")[2] == f"{worst} ({added((estimate - exact)[layer, column])})"


def test_a_bar_is_a_neuron_and_a_click_takes_it(two):
    picture = two.picture("neurons")
    patches, order = picture.layout["meta"]["patches"], picture.parts[0]["customdata"]
    assert [part["name"] for part in picture.parts] == list(INTO.values())
    assert patches["run"] == "edits" and patches["texts"] == [f"blocks.1.ffn.hidden.{i}*patch" for i in order]
    seen = picture.points()
    for part in picture.parts:
        assert part["customdata"] == order == [int(name) for name in part["x"]]
    for p in seen:
        assert (
            p.change == {"neuron": order[p.item]} and f"neuron {order[p.item]}\n" in p.told and tells(p.told, p.value)
        )
        derivation = PANEL["neurons"].inspect(two.runs, two.selection(), point_of(p))
        assert p.value == pytest.approx(derivation.value, abs=1e-9)
        assert derivation.recomputed == near(p.value)
        assert (INTO["denoise"] if p.part == 0 else INTO["noise"]) == picture.parts[p.part]["name"]


def point_of(p) -> Point:
    return Point(x=p.x, y=p.y, curve=p.part, item=p.item)


def test_another_layer_and_another_receiver_are_asked_anew(two):
    """What is kept is of one question: not drawn under another choice."""
    for name, one, other in (
        ("neurons", {"layer": 0}, {"layer": 1}),
        ("paths", {"receiver": "q"}, {"receiver": "logits"}),
        ("paths", {"patch_direction": "denoise"}, {"patch_direction": "noise"}),
        ("estimate", {"metric": "logit_difference"}, {"metric": "probability"}),
        ("estimate", {"patch_direction": "denoise"}, {"patch_direction": "noise"}),
    ):
        before, after, again = (two.picture(name, **chosen) for chosen in (one, other, one))
        value = "y" if name == "neurons" else "z"
        assert before.parts[0][value] == again.parts[0][value] != after.parts[0][value], name


@pytest.mark.parametrize("name", ["heads_denoise", "positions_noise"])
def test_a_clicked_cell_is_the_one_that_is_told(two, name):
    picture, way = two.picture(name), name.partition("_")[2]
    for p in picture.points():
        if (p.x, p.y) not in ((0, 1), (2, 0), (2, 1)):
            continue
        derivation = PANEL[name].inspect(two.runs, two.selection(), point_of(p))
        assert derivation.value == pytest.approx(p.value, abs=1e-9)
        part = "attn.z" if "heads" in name else "resid_pre"
        expected = two.expected(activation_patching, part=part, direction=way)[int(p.y), int(p.x)]
        assert derivation.recomputed == near(expected)


@pytest.mark.parametrize("direction", INTO)
@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("estimate", {"patch_head": "attn.z"}),
        ("estimate", {"patch_head": "attn.k"}),
        ("estimate_positions", {"metric": "log_probability"}),
        ("paths", {"receiver": "logits"}),
        ("paths", {"receiver": "q"}),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else value,
)
def test_a_clicked_estimate_or_path_is_worked_out_again(two, name, chosen, direction):
    selection = two.selection(patch_direction=direction, **chosen)
    picture = picture_of(PANEL[name], PANEL[name].draw(two.runs, selection))
    points = picture.points()
    for p in (points[0], points[-1]):
        derivation = PANEL[name].inspect(two.runs, selection, point_of(p))
        assert derivation.value == pytest.approx(p.value, abs=1e-9) and derivation.recomputed == near(p.value)
        assert tells("\n".join(derivation.lines()), p.value)
    with pytest.raises(NoSuchPoint):
        PANEL[name].inspect(two.runs, selection, Point(x=99, y=0))


@pytest.mark.parametrize("name", ["agreement", "agreement_positions"])
def test_a_clicked_dot_tells_both_of_its_numbers(two, name):
    for p in two.picture(name).points()[1::9]:
        exact, estimate = PANEL[name].inspect(two.runs, two.selection(), point_of(p))
        assert (exact.value, estimate.value) == (pytest.approx(p.x), pytest.approx(p.y))
        assert (exact.recomputed, estimate.recomputed) == (near(p.x), near(p.y))


@pytest.mark.parametrize("clean_run", "ab")
def test_the_words_say_which_run_is_which_and_what_they_measure(two, clean_run):
    said = formula(two.runs, two.selection(clean_run=clean_run)).split("\n")
    assert said[0].startswith("clean: B, corrupted: A" if clean_run == "b" else "clean: A, corrupted: B")
    clean, corrupted = (two.runs.other, two.runs.trace) if clean_run == "b" else (two.runs.trace, two.runs.other)
    answer = int(clean["logits"][-1].argmax())
    wrong = next(int(i) for i in np.argsort(-corrupted["logits"][-1], kind="stable") if i != answer)
    for name, run in (("clean", clean), ("corrupted", corrupted)):
        measured = float(run["logits"][-1][answer] - run["logits"][-1][wrong])
        assert tells(said[1].split(f"m({name}) = ")[1].split(",")[0], measured)


# Of prompts of unequal length: A (12 tokens) has one token more than B.
@pytest.fixture
def unequal(lms, trace_of) -> Two:
    trace = trace_of("rope")
    ids = (*trace.token_ids[:3], *trace.token_ids[4:5], 70, *trace.token_ids[6:])
    return Two(Comparison.of(trace, capture(lms["rope"], ids, tokenizer=tokenizer())), lms["rope"])


@pytest.mark.parametrize("clean_run", "ab")
@pytest.mark.parametrize("name", BY_POSITION)
def test_of_unequal_prompts_what_has_no_partner_is_not_patched_and_says_so(unequal, name, clean_run):
    partners = unequal.runs.alignment.partners
    lone = [partners.index(None)] if clean_run == "a" else []
    picture = unequal.picture(name, clean_run=clean_run)
    values = shown(picture)
    assert values.shape == (2, 12 if clean_run == "a" else 11)
    assert [i for i in range(values.shape[1]) if np.isnan(values[:, i]).all()] == lone
    notes = [note for note in picture.layout.get("annotations", ()) if note["text"] == "not patched"]
    assert [note["x"] for note in notes] == lone
    if "positions" in name.split("_")[0]:
        patches, way = picture.layout["meta"]["patches"], name.partition("_")[2]
        into_a = patches["run"] == "edits"
        assert into_a == ((way == "denoise") == (clean_run == "b"))
        back = unequal.runs.alignment.back
        for place in range(values.shape[1]):
            at = place if into_a == (clean_run == "a") else (partners if clean_run == "a" else back)[place]
            assert patches["texts"][1][place] == ("" if place in lone else f"blocks.1.resid_pre@{at}*patch")
    chosen = 9 if clean_run == "a" else partners[9]
    frame = picture.layout["shapes"][0]
    assert (frame["x0"] + frame["x1"]) / 2 == chosen


@pytest.mark.parametrize("clean_run", "ab")
def test_tokens_that_were_put_together_take_each_other_s_values_whichever_run_is_clean(unequal, clean_run):
    a, b = 6, 4
    runs = Comparison.of(unequal.runs.trace, unequal.runs.other, pins=((a, b),))
    assert runs.alignment.partners[a] == b != unequal.runs.alignment.partners[a]
    two = Two(runs, unequal.lm)
    for way in INTO:
        patches = two.picture(f"positions_{way}", clean_run=clean_run).layout["meta"]["patches"]
        put_at = a if patches["run"] == "edits" else b
        assert patches["texts"][1][a if clean_run == "a" else b] == f"blocks.1.resid_pre@{put_at}*patch"


def test_of_unequal_prompts_heads_have_effects_and_patterns_a_sentence(unequal):
    for name in ("heads_denoise", "heads_noise", "estimate", "agreement", "paths", "neurons"):
        picture = unequal.picture(name, patch_head="attn.q")
        assert picture.points(), name
        last = picture.points()[-1]
        assert PANEL[name].inspect(unequal.runs, unequal.selection(patch_head="attn.q"), point_of(last)), name
        assert PANEL[name].mark(unequal.runs, unequal.selection()).state == "recomputed", name
        if name != "neurons" and name != "paths":
            with pytest.raises(Incomparable, match="a pattern goes over only between prompts of as many tokens"):
                unequal.picture(name, patch_head="attn.pattern")
    assert "values go over between tokens that stand beside each other" in formula(unequal.runs, unequal.selection())
    assert "; 1 of the clean prompt have no partner" in formula(unequal.runs, unequal.selection(clean_run="a"))


def test_of_prompts_that_have_no_partners_it_is_said_what_to_do(lms, trace_of):
    trace = trace_of("rope")
    other = capture(lms["rope"], (70, 71, 72), tokenizer=tokenizer())
    two = Two(Comparison.of(trace, other), lms["rope"])
    with pytest.raises(Incomparable, match="put two tokens together above first"):
        two.picture("heads_denoise")
    assert "put two tokens together" in formula(two.runs, two.selection())
