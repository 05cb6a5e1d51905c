"""The app on a user's own module: model, tab and mark on the map, from a single run of the file."""

import json
import re

import gradio as gr
import numpy as np
import pytest
import torch

from explorer.cli_options import parse_arguments
from explorer.diagnosis.command_line import register_user_module
from explorer.errors import UserError
from explorer.explain.notation import format_number
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.views import FULL, STORY_STEPS
from explorer.views.diagnosis import VIEW, component_colour
from explorer.views.overview import VIEW as OVERVIEW
from explorer.views.style import ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.browser_api.open_view import make_open_view
from explorer.web.browser_api.page_contents import view_contents
from explorer.web.page import Page
from explorer.web.shared_constants import VOCABULARY
from model.checkpoint import CheckpointError


def test_model_has_module_weights_and_trace_has_report(library, file):
    lm, trace = library.model_and_trace("Mine", (1, 2, 3))
    torch.manual_seed(0)
    assert lm.config.num_layers == 3 and lm.token_embedding.weight.dtype == torch.float32
    assert (lm.final_norm.weight == 1).all()  # not the random weights of the diagnosis
    assert (trace.diagnosis.first, trace.diagnosis.cause.name) == ("blocks.0.attn.q_rot", "rotation_of_halves")
    assert library.model_and_trace("llama-fables", (1, 2, 3))[1].diagnosis is None


def test_module_runs_only_at_start(show_view, file, page_state):
    runs = file.with_name("mine.py.runs")
    before = runs.read_text()
    assert before
    for view in (*FULL, VIEW):
        view_contents(show_view(page_state, view.name), True, 0)
    assert runs.read_text() == before


def test_tab_shows_and_draws_report(show_view, page_state):
    view = show_view(page_state, "own_module")
    report = view.trace.diagnosis
    assert "the rotation pairs dimensions otherwise" in view.formula and "blocks.2.attn.q_rot" in view.formula
    bars, frame = (
        part[0]
        for part in (
            view.draw(VIEW.panels[0]).traces_and_layout[0],
            view.draw(VIEW.panels[0]).traces_and_layout[1]["shapes"][1:],
        )
    )
    assert list(bars["x"]) == [row.tap for row in report.rows]
    worst = list(bars["x"])[int(np.argmax(np.asarray(bars["y"])[:14]))]
    assert worst == "blocks.0.attn.z" and bars["x"][int(frame["x0"] + 0.5)] == worst
    assert bars["customdata"][0] == ["activations", "embed"]
    (cells,) = view.draw(VIEW.panels[1]).traces_and_layout[0]
    row_index = list(cells["y"]).index("blocks.0.attn.z")
    assert (np.asarray(cells["z"])[row_index] > 0).tolist() == [False] + [True] * 16
    (line,) = view.draw(VIEW.panels[2]).traces_and_layout[0]
    differences = dict(zip(line["x"], line["y"], strict=True))
    assert differences["blocks.0.attn.v"] < 1e-5 < 1e-2 < differences["blocks.0.attn.z"]
    (limit,) = [line for line in view.draw(VIEW.panels[0]).traces_and_layout[1]["shapes"] if line["y0"] == line["y1"]]
    assert limit["y0"] == 1  # larger differences exceed rounding error
    assert json.dumps(
        view_contents(view, True, 0) | view_contents(view, True, 1) | view_contents(view, True, 2), allow_nan=False
    )


def test_hover_texts_match_report(show_view, page_state):
    view = show_view(page_state, "own_module")
    rows = view.trace.diagnosis.rows
    bars = view.draw(VIEW.panels[0]).traces_and_layout[0][0]
    for row, hover in zip(rows, bars["hovertext"], strict=True):
        name, hover_text = hover.split("<br>")
        recorded_text = f"{format_number(row.times)} times rounding, off by up to {format_number(row.largest)}"
        assert name == row.tap and (
            hover_text == recorded_text if row.is_recorded else hover_text.startswith("not seen")
        )
    (cells,) = view.draw(VIEW.panels[1]).traces_and_layout[0]
    assert list(cells["x"]) == list(range(len(view.trace.diagnosis.token_ids)))
    hover_text = dict(zip(cells["y"], cells["text"], strict=True))
    assert hover_text == {
        row.tap: [format_number(value) for value in row.by_position] for row in rows if row.by_position
    }


def test_tap_has_colour_of_its_component():
    colours = {
        NORM: ["blocks.0.attn_norm", "blocks.2.ffn_norm", "final_norm"],
        ATTENTION: ["blocks.0.attn.q_rot", "blocks.1.attn.out"],
        FEED_FORWARD: ["blocks.0.ffn.gate"],
        EMBEDDING: ["embed", "logits"],
        RESIDUAL: ["blocks.0.resid_mid"],
    }
    assert all(component_colour(tap) == expected for expected, taps in colours.items() for tap in taps)


def test_other_model_has_no_report(library, page_state, show_view):
    other = PageState(
        PageStateBuilder(RunService(library)).create_run("llama-fables", "Once upon a time"), page_state.selection
    )
    view = make_open_view(RunService(library), other)
    assert "no module of yours" in view.formula
    assert not any(view.has(panel) for panel in VIEW.panels)
    assert "≠" not in "".join(part.hover_text for part in show_view(other, "overview").draw(OVERVIEW.panels[1]).parts)


@pytest.mark.exhaustive
def test_tab_exists_only_with_module(library):
    def tab_names(library, checkpoint):
        page = Page(library, checkpoint)
        markup = [block.value for block in page.build().blocks.values() if type(block) is gr.HTML]
        return sorted(re.findall(r'data-view="(\w+)"', "".join(markup)))

    names = [view.name for view in (*FULL, *STORY_STEPS)]
    assert tab_names(library, "Mine") == sorted([*names, "own_module"])
    assert tab_names(ModelLibrary("cpu"), "llama-fables") == sorted(names)


@pytest.mark.exhaustive
def test_url_of_missing_tab_opens_default_view(library):
    state = {"checkpoint": "llama-fables", "text": "Once upon", "view": "own_module"}
    assert PageStateBuilder(RunService(library)).state_from_query(state).selection.view == "own_module"
    assert PageStateBuilder(RunService(ModelLibrary("cpu"))).state_from_query(state).selection.view == Selection.view


@pytest.mark.exhaustive
def test_infinite_difference_is_drawn(file):
    library = ModelLibrary("cpu")
    register_user_module(parse_arguments(["--module", f"{file}:Infinite"]), library)
    state = PageState(
        PageStateBuilder(RunService(library)).create_run("Infinite", "Once upon"), Selection(view="own_module")
    )
    view = make_open_view(RunService(library), state)
    assert view.trace.diagnosis.first == "logits" and view.trace.diagnosis.cause is None
    assert json.dumps(view_contents(view, True, 0) | view_contents(view, True, 1), allow_nan=False)


@pytest.mark.exhaustive
def test_invalid_options_are_refused(file):
    with pytest.raises(UserError, match="there is no file 'nowhere.json'"):
        register_user_module(
            parse_arguments(["--module", f"{file}:Mine", "--tokenizer", "nowhere.json"]), ModelLibrary("cpu")
        )
    (file.parent / "llama.py").write_text(
        "from course import TransformerLM as Named\nglobals()['llama-fables'] = Named\n"
    )
    with pytest.raises(CheckpointError, match="has the name"):
        register_user_module(parse_arguments(["--module", f"{file.parent}/llama.py:llama-fables"]), ModelLibrary("cpu"))


def open_first_page(arguments):
    """Return the tokenizer, prompt ids and vocabulary line of a page that is opened on a module."""
    library = ModelLibrary("cpu")
    page = Page(library, register_user_module(parse_arguments(arguments), library))
    page.build()
    page_state = page.actions.parse_query({})
    answer = BrowserEndpoints(page.actions.state_builder.runs).answer("show", page_state.as_dict())
    return library.model(page.checkpoint)[1], page_state.run.prompt, answer["contents"][VOCABULARY]


@pytest.mark.exhaustive
def test_module_without_vocabulary_is_read_as_bytes(file):
    tokenizer, ids, line = open_first_page(["--module", f"{file}:Mine", "--config", "vocab_size=300"])
    assert tokenizer.vocab_size == 300 and tokenizer.decode(ids).encode() == bytes(ids)
    assert line == "No vocabulary was given (--tokenizer): tokens are bytes, and ids beyond 255 have no text."


@pytest.mark.exhaustive
def test_prompt_is_encoded_with_given_vocabulary(file, tmp_path):
    characters = sorted(set("Once upon a time there was a fox who wanted the moon."))
    (tmp_path / "chars.json").write_text(json.dumps(characters))
    size = ["--config", f"vocab_size={len(characters)}"]
    arguments = ["--module", f"{file}:Mine", "--tokenizer", str(tmp_path / "chars.json"), *size]
    _tokenizer, ids, line = open_first_page(arguments)
    assert "".join(characters[token_id] for token_id in ids) == "Once upon a time there was a fox who wanted the moon."
    assert line == ""


def test_example_prompt_fits_small_vocabulary(file):
    tokenizer, ids, line = open_first_page(["--module", f"{file}:Mine", "--config", "vocab_size=50"])
    assert tokenizer.decode(ids) == "01" and "its 50 tokens are read as bytes" in line
    with pytest.raises(UserError, match="has no token for 'O'"):
        tokenizer.encode("Once")
