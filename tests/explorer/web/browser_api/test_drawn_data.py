"""Data that the browser draws, compared with a run of the model, also for a text longer than the context."""

import base64

import numpy as np
import pytest
import torch

from explorer.explain.notation import escape_token
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.tracing.capture import capture
from explorer.tracing.run_service import RunService
from explorer.views import VIEWS
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.browser_api.open_view import make_open_view
from explorer.web.browser_api.page_contents import figure_payload
from model.config import window_start
from model.generation.autoregressive import generate
from model.generation.sampling import uniform_draw
from tests.rendered_figures import contains_number
from tests.subtest_loops import subtest_each

CONTEXT, PROMPT, NUM_GENERATED = 32, 28, 14
SETTINGS = {"temperature": 0.7, "top_k": 12, "seed": 5}
SELECTED_QUERIES = [0, 6, 20]  # of the visible tokens


@pytest.fixture(scope="module")
def endpoints(library) -> BrowserEndpoints:
    return BrowserEndpoints(RunService(library))


@pytest.fixture(scope="module")
def text(lms, tiny_tokenizer) -> dict[str, list[int]]:
    """Token ids of a prompt that nearly fills the context, and of its continuation: together more than the context."""
    prompt = tiny_tokenizer.encode("Once upon a time the owl asked the moon, and the fox asked the lake, until")[
        :PROMPT
    ]
    assert len(prompt) == PROMPT
    steps = generate(lms["rope"], prompt, max_new_tokens=NUM_GENERATED, **SETTINGS)
    return {"prompt": prompt, "generated": [step.token_id for step in steps]}


@pytest.fixture(scope="module", params=[False, True], ids=["whole", "slid"])
def visible_answer(request, endpoints, text) -> dict:
    """State, contents and visible token ids: for the prompt alone, and for the end of the whole text."""
    state = {"checkpoint": "rope", "view": "attention", "query": 20, "unfolded": "all", **SETTINGS, **text}
    state |= {} if request.param else {"generated": []}
    ids = state["prompt"] + state["generated"]
    start = window_start(len(ids), CONTEXT)
    assert bool(start) is request.param
    contents = {}
    for stage in range(3):
        contents |= endpoints.answer("show", state, stage)["contents"]
    return {"state": state, "contents": contents, "start": start, "seen": ids[start:]}


@pytest.fixture(scope="module")
def logits(lms, visible_answer) -> np.ndarray:
    """Logits (T, V) of the visible tokens."""
    return lms["rope"](torch.tensor([visible_answer["seen"]]))[0].double().numpy()


def test_head_thumbnails_match_patterns(lms, visible_answer):
    """Row = query, column = key, for every head at its own place in the grid."""
    patterns = capture(lms["rope"], visible_answer["seen"]).stack("blocks.*.attn.pattern")
    grid = visible_answer["contents"]["attention-heads"]
    count = len(visible_answer["seen"])
    assert (grid["layers"], grid["heads"], grid["pixels"], grid["block"]) == (2, 3, count, 1)
    for layer in range(2):
        for head in range(3):
            pixels = np.frombuffer(base64.b64decode(grid["data"][layer * 3 + head]), np.uint8)
            displayed = pixels.reshape(count, -1)[:, :count]  # rows are padded to a multiple of 4
            assert displayed[3, 1] and not displayed[1, 3]  # the causal mask hides later keys
            assert np.abs(displayed / 255 - patterns[layer][head]).max() <= 0.51 / 255


def test_each_token_is_shaded_by_its_surprisal_entropy_or_rank(visible_answer, logits, tiny_tokenizer):
    strip, visible_ids = visible_answer["contents"]["strip"], visible_answer["seen"]
    assert strip["tokens"] == [tiny_tokenizer.vocabulary[i] for i in visible_ids]
    assert strip["num_prompt"] == PROMPT - visible_answer["start"] and strip["earlier"] == visible_answer["start"]
    before = logits[:-1] - np.log(np.exp(logits[:-1]).sum(-1, keepdims=True))
    bits = [-row[i] / np.log(2) for row, i in zip(before, visible_ids[1:], strict=True)]
    open_bits = -(np.exp(before) * before).sum(-1) / np.log(2)
    ranks = [(row > row[i]).sum() + 1 for row, i in zip(before, visible_ids[1:], strict=True)]
    shares = {
        "surprisal": np.divide(bits, 12),
        "entropy": open_bits / np.log2(300),
        "rank": np.log2(ranks) / np.log2(300),
    }
    for name, values in {"surprisal": bits, "entropy": open_bits, "rank": ranks}.items():
        shade = strip["shades"][name]
        assert shade["shares"] == pytest.approx([0, *np.clip(shares[name], 0, 1)], abs=6e-4)
        assert shade["words"][0] == ""
        assert all(contains_number(words, value) for words, value in zip(shade["words"][1:], values, strict=True))


def test_playback_starts_at_first_visible_choice(visible_answer):
    playback, visible_ids, generated = (
        visible_answer["contents"]["playback"],
        visible_answer["seen"],
        visible_answer["state"]["generated"],
    )
    assert playback["tokens"] == visible_answer["contents"]["strip"]["tokens"][playback["first"] :]
    steps = len(playback["tokens"]) - 1
    assert visible_ids[playback["first"] + 1 :] == generated[playback["unseen"] : playback["unseen"] + steps]
    assert playback["unseen"] + steps == len(generated)
    assert playback["first"] == PROMPT - 1 - visible_answer["start"]  # followed by the first generated token


@subtest_each("query", SELECTED_QUERIES)
def test_random_number_depends_on_position_in_whole_text(endpoints, visible_answer, lms, query):
    state = visible_answer["state"] | {"query": query}
    table = endpoints.answer("tune", state)["contents"]["next-token"]
    position = visible_answer["start"] + query + 1
    assert table["u"] == uniform_draw(5, position)
    inside = [stretch for stretch in table["stretches"] if stretch["start"] <= table["u"] < stretch["end"]]
    assert [stretch["token_id"] for stretch in inside] == [table["drawn"]]
    ids = state["prompt"] + state["generated"]
    if position >= PROMPT and window_start(position, CONTEXT) == visible_answer["start"]:
        assert table["drawn"] == table["actual"] == ids[position]  # with this random number


@subtest_each("query", SELECTED_QUERIES)
@subtest_each("limits", [{}, {"repetition_penalty": 1.4, "top_p": 0.8, "min_p": 0.02}], ids=["top-k", "all"])
def test_rows_and_segments_match_sampling_stages(endpoints, visible_answer, logits, query, limits):
    settings = GenerationSettings(**SETTINGS, **limits)
    table = endpoints.answer("tune", visible_answer["state"] | {"query": query} | limits)["contents"]["next-token"]
    raw = logits[query]
    plain = np.exp(raw) / np.exp(raw).sum()
    penalised, before = raw.copy(), list(set(visible_answer["seen"][: query + 1]))
    penalty = settings.repetition_penalty
    penalised[before] = np.where(raw[before] > 0, raw[before] / penalty, raw[before] * penalty)
    scaled = penalised / settings.temperature
    order = np.argsort(-penalised, kind="stable")
    weights = np.zeros(len(raw))
    weights[order[: settings.top_k]] = np.exp(scaled[order[: settings.top_k]])
    shares = weights / weights.sum()
    weights[order[1:][shares[order].cumsum()[:-1] >= settings.top_p]] = 0
    weights[weights < settings.min_p * weights.max()] = 0
    sampled = weights / weights.sum()
    sums = dict(zip(order, sampled[order].cumsum(), strict=True))
    stages = {"logit": raw, "penalised": penalised, "scaled": scaled, "plain": plain, "probability": sampled}
    for row in table["rows"]:
        i = row["token_id"]
        assert {name: row[name] for name in stages} == pytest.approx(
            {name: values[i] for name, values in stages.items()}, rel=1e-4, abs=1e-6
        )
        assert (row["cut_by"] is not None) == (sampled[i] == 0) and order[row["rank"] - 1] == i
        assert row["cut_by"] or row["cumulative"] == pytest.approx(sums[i], abs=1e-6)
    for stretch in table["stretches"]:
        i = stretch["token_id"]
        assert (stretch["start"], stretch["end"]) == pytest.approx((sums[i] - sampled[i], sums[i]), abs=1e-5)
    assert np.argmax(sampled) == table["stretches"][0]["token_id"]


def test_branch_probability_is_product_of_its_tokens(endpoints, visible_answer, lms):
    state = visible_answer["state"]
    if not state["generated"]:
        assert visible_answer["contents"]["branches"] == []
        return
    (row,) = visible_answer["contents"]["branches"]
    ids, bits = state["prompt"] + state["generated"], []
    for position in range(PROMPT, len(ids)):
        visible_ids = ids[window_start(position, CONTEXT) : position]
        row_logits = lms["rope"](torch.tensor([visible_ids]))[0, -1].double()
        bits.append(-torch.log_softmax(row_logits, -1)[ids[position]].item() / np.log(2))
    assert row["ids"] == state["generated"] and row["probability"] == pytest.approx(2 ** -bits[0], rel=1e-3)
    assert contains_number(row["total"], -sum(bits)) and contains_number(row["per_token"], -np.mean(bits))
    assert contains_number(row["perplexity"], 2 ** np.mean(bits)) and contains_number(row["first"], 2 ** -bits[0])


def test_intervention_slider_has_value_of_run(endpoints, visible_answer):
    edits = "blocks.1.attn.z.2*scale*0.35~rope.angles*shift*7~rope.angles*base*500"
    state = visible_answer["state"] | {"edits": edits, "layer": 1, "head": 2, "view": "experiments"}
    offered = endpoints.answer("show", state)["contents"]["experiments-what-ifs"]
    amounts = {offer["edit"]: offer["amount"] for offer in offered if offer["amount"] != offer["default"]}
    assert amounts == {"blocks.1.attn.z.2*scale": 0.35, "rope.angles*shift": 7, "rope.angles*base": 500}
    (base,) = [offer for offer in offered if offer["edit"] == "rope.angles*base"]
    assert (base["minimum"], base["maximum"]) == (1, 6)  # powers of ten


def test_selection_lists_name_their_tokens(endpoints, visible_answer):
    for view in ("attention", "tokens", "experiments"):
        state = visible_answer["state"] | {"view": view, "query": 9, "key": 4}
        lists = {c["field"]: c for c in endpoints.answer("show", state)["contents"][f"{view}-choosers"]["choices"]}
        tokens = visible_answer["contents"]["strip"]["tokens"]
        assert [value for value, _ in lists["query"]["options"]] == list(range(len(tokens)))
        for field in {"query", "key"} & set(lists):
            for value, words in lists[field]["options"]:
                assert words.split()[0] == str(value) and words.endswith(escape_token(tokens[value]))
        if "key" in lists:
            assert [value for value, _ in lists["key"]["options"]] == list(range(10))


@subtest_each("view", VIEWS, ids=lambda view: view.name)
def test_every_figure_and_badge_has_its_own_element(endpoints, view):
    state = {
        "checkpoint": "rope",
        "prompt": [40, 50, 60, 70, 40, 50],
        "view": view.name,
        "unfolded": "all",
        "query": 4,
        "key": 2,
        "head": 1,
    }
    contents = {}
    for stage in range(3):
        contents |= endpoints.answer("show", state, stage)["contents"]
    open_view = make_open_view(endpoints.runs, PageState.parse(state))
    for panel in view.panels:
        name = f"{view.name}-{panel.name}"
        mark = open_view.verify(panel)
        assert contents[f"{name}-mark"] == (mark and mark.as_dict())
        assert contents[name] == figure_payload(open_view.draw(panel))
