"""Answers of the endpoints that the browser calls."""

import json

import pytest

from explorer.errors import UserError
from explorer.state.page_state import RunRequest
from explorer.state.selection import MAX_SEARCH_CHARS, Selection
from explorer.tracing.run_service import RunService
from explorer.views import STORY_VIEWS, VIEW_BY_NAME, VIEWS
from explorer.views.story import largest_look_back
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.endpoints import FILES_CHANGED, BrowserEndpoints
from model import CheckpointError
from tests.subtest_loops import subtest_each

every_view = subtest_each("view", VIEWS, ids=lambda view: view.name)


@pytest.fixture(scope="module")
def endpoints(library) -> BrowserEndpoints:
    return BrowserEndpoints(RunService(library))


@pytest.fixture
def state(endpoints) -> dict:
    run = PageStateBuilder(endpoints.runs).create_run("rope", "the fox asked the owl")
    selection = Selection(view="attention", query=3, key=1, unfolded="all")
    return run.as_dict() | selection.as_dict() | {"temperature": 1.0, "top_k": 0}


@pytest.fixture
def all_contents(endpoints):
    """Function that returns the contents of all parts of an answer, merged as the browser merges them."""

    def collect_contents(about: str, state: dict) -> dict:
        contents = {}
        for stage in range(endpoints.num_stages(about, state)):
            answer = endpoints.answer(about, state, stage)
            assert json.loads(json.dumps(answer, allow_nan=False)) == answer
            assert not contents.keys() & answer["contents"].keys()
            contents |= answer["contents"]
        return contents

    return collect_contents


@pytest.mark.parametrize("about", ["show", "view", "pick"])
@every_view
def test_open_view_and_prediction_are_drawn(endpoints, all_contents, state, view, about):
    """pick" draws all figures that depend on the selection; "show" also the contents around the tabs."""
    contents = all_contents(about, state | {"view": view.name})
    texts = {f"{view.name}-{part}" for part in ("words", "formula", "choosers", "what-ifs")}
    texts |= {f"{view.name}-in-full"} if view in STORY_VIEWS else set()
    texts |= {f"{view.name}-code"} if view.code else set()
    texts |= {f"{view.name}-lists", f"{view.name}-written"} if view.name == "directions" else set()
    texts |= set() if about == "pick" else {"view"}
    texts |= {
        "next-token",
        "next-token-words",
        "brief",
        "guess",
        "problem",
        "changes",
        "changes-effect",
        "why-token-question",
    }
    texts |= {"why-token", "stand-ins"} | (
        {"strip", "strip-b", "runs", "story", "playback", "branches", "advice", "picker", "open-model", "series"}
        | {"chat", "facts", "vocabulary"}
        if about == "show"
        else set()
    )
    panels_by_id = {
        f"{view.name}-{panel.name}": panel
        for panel in view.panels
        if about != "pick" or not panel.is_selection_independent
    }
    headings = {name for name in contents if name.endswith("-heading")}
    drawn_headings = {f"{name}-heading" for name in panels_by_id if contents[name] is not None}
    assert drawn_headings <= headings <= {f"{view.name}-{panel.name}-heading" for panel in view.panels}
    assert set(contents) == texts | set(panels_by_id) | {f"{name}-mark" for name in panels_by_id} | headings
    trace = endpoints.runs.trace(RunRequest.parse(state))
    for name, panel in panels_by_id.items():  # a single run has no comparison
        assert (contents[name] is not None) is (panel.is_applicable(trace) and not panel.compared_run)
    assert contents[f"{view.name}-formula"] and contents["next-token"] and contents["problem"] == ""


@every_view
def test_first_row_is_answered_before_the_rest(endpoints, state, view):
    first = endpoints.answer("show", state | {"view": view.name})
    contents = {panel.name: first["contents"].get(f"{view.name}-{panel.name}", "later") for panel in view.panels}
    drawn_names = [name for name, content in contents.items() if content is not None]  # None: the panel does not apply
    widths = [panel.width for panel in view.panels if panel.name in drawn_names]
    at_once = 1 + widths[:2].count("half") // 2
    assert "later" not in [contents[name] for name in drawn_names[:at_once]]
    assert {contents[name] for name in drawn_names[at_once:]} <= {"later"}
    assert endpoints.num_stages("show", state | {"view": view.name}) > 1


@every_view
def test_only_unfolded_figures_below_first_row_are_drawn(all_contents, state, view):
    folded = all_contents("view", state | {"view": view.name, "unfolded": ""})
    unfolded = all_contents("view", state | {"view": view.name})
    ids = [f"{view.name}-{panel.name}" for panel in view.panels]
    shown_ids = [name for name in ids if unfolded[name] is not None]
    later_ids = [name for name in shown_ids if folded[name] == {"folded": True}]
    assert later_ids == shown_ids[len(shown_ids) - len(later_ids) :]
    assert len(shown_ids) - len(later_ids) in (1, 2) or not shown_ids
    assert not any(f"{name}-mark" in folded for name in later_ids)
    assert [name for name in ids if folded[name] is None] == [name for name in ids if unfolded[name] is None]
    if later_ids:
        one = all_contents("view", state | {"view": view.name, "unfolded": later_ids[-1]})
        assert one[later_ids[-1]] == unfolded[later_ids[-1]] and f"{later_ids[-1]}-mark" in one
        assert [name for name in ids if one[name] == {"folded": True}] == later_ids[:-1]


@pytest.mark.parametrize(
    "view, at_once", {"attention": {"heads", "pattern"}, "prediction": {"lens"}, "kv_cache": {"cells"}}.items()
)
def test_figures_in_first_part_of_answer(endpoints, state, view, at_once):
    contents = endpoints.answer("show", state | {"view": view})["contents"]
    panels = {panel.name: contents.get(f"{view}-{panel.name}") for panel in VIEW_BY_NAME[view].panels}
    assert {name for name, content in panels.items() if content} == at_once


def test_inapplicable_view_has_no_figures(endpoints, all_contents, state, library):
    contents = all_contents("show", state | {"checkpoint": "none", "view": "positions"})
    positions = next(view for view in VIEWS if view.name == "positions")
    assert contents["positions-words"] == positions.unavailable_message(library.model("none")[0].config)
    assert all(contents[f"positions-{panel.name}"] is None for panel in positions.panels)


def test_full_answer_has_model_facts(endpoints, all_contents, state):
    for checkpoint, words in {"none": "no positions", "gpt": "LayerNorm"}.items():
        answered = state | {"checkpoint": checkpoint}
        assert words in all_contents("show", answered)["facts"]


def test_sampling_slider_changes_prediction_only(all_contents, state):
    cold, hot = (all_contents("tune", state | {"temperature": temperature}) for temperature in (0, 2))
    assert (
        set(cold)
        == set(hot)
        == {"next-token", "next-token-words", "problem", "brief", "guess", "changes-effect", "why-token-question"}
    )
    assert [(one["next-token-words"]["kept"], one["next-token-words"]["size"]) for one in (cold, hot)] == [
        (1, 300),
        (300, 300),
    ]
    before, after = (
        {row["token_id"]: row["plain"] for row in content["next-token"]["rows"][:5]} for content in (cold, hot)
    )
    assert before == after  # the model's own probabilities are unchanged
    assert cold["next-token"]["u"] == hot["next-token"]["u"]


def test_token_search_shows_matches_and_ignores_invalid_text(all_contents, state):
    plain, with_search = all_contents("tune", state), all_contents("tune", state | {"find": "the"})
    assert with_search["next-token"]["found"] > 0 == plain["next-token"]["found"]
    for nonsense in (None, 7, ["the"], {}):
        assert all_contents("tune", state | {"find": nonsense}) == plain
    assert len(all_contents("tune", state | {"find": "x" * 10**5})["next-token"]["find"]) == MAX_SEARCH_CHARS


def test_new_token_updates_text_and_prediction(all_contents, state):
    state = state | {"generated": [5, 6]}
    contents = all_contents("token", state)
    whole = all_contents("show", state)
    assert all(contents[part] == whole[part] for part in ("story", "playback"))
    assert contents["strip"]["tokens"] == whole["strip"]["tokens"]
    lists = f"{state['view']}-choosers"
    around = {
        "chat",
        "strip",
        "strip-b",
        "story",
        "playback",
        "next-token",
        "next-token-words",
        "problem",
        "why-token-question",
        "brief",
        "changes-effect",
        "guess",
    }
    assert set(contents) == around | {lists}
    assert not contents[lists]["all"] and len(contents[lists]["choices"][0]["options"]) == len(state["prompt"]) + 2
    assert len(contents["strip"]["tokens"]) == len(state["prompt"]) + 2
    assert contents["story"]["prompt"] == "the fox asked the owl" and contents["story"]["generated"]
    assert contents["story"]["ended"] == ""


def test_end_of_text_is_reported_and_its_token_has_sign(endpoints, all_contents, state):
    _lm, tokenizer = endpoints.runs.model(state["checkpoint"])
    contents = all_contents("show", state | {"generated": [5, *tokenizer.eos_ids], "view": "overview", "query": 99})
    assert contents["story"]["ended"] == "The model ended the text after 2 tokens."
    assert contents["story"]["generated"].endswith("<|endoftext|>")  # the page's script shows the sign
    assert contents["strip"]["tokens"][-1] == "<|endoftext|>"
    assert contents["overview-words"].startswith("After “■ end of text” the model")
    assert contents["overview-whole"]["rows"][-1][2] == "\u2068■ end of text\u2069"


@subtest_each("about", ["show", "pick", "token", "tune"])
@subtest_each(
    "broken",
    [{}, {"checkpoint": 1}, {"checkpoint": "<b>", "prompt": [1]}, {"checkpoint": "rope", "prompt": [10**6]}],
    ids=str,
)
def test_invalid_state_is_refused(endpoints, about, broken):
    with pytest.raises((UserError, CheckpointError), match=r"\w+ \w+ \w+"):
        endpoints.answer(about, broken)


def test_endpoint_names_match_browser_calls(endpoints):
    assert [function.__name__ for function in endpoints.functions] == [
        "inspect",
        "next_token_scores",
        "define",
        "direction_of_lists",
        "python_script",
        "listed_lessons",
        "lesson_sheet",
        "walk",
        "search_index",
        "find_tokens",
        "rank_of_token",
        "begin_job",
        "job_progress",
        "leave_job",
        "model_needs",
        "begin_opening",
        "begin_check",
    ]  # as in server_connection.js


@subtest_each(
    "point",
    [{"x": 99, "y": 1e9}, {"x": 0, "y": -1}, {"x": 0, "y": 0, "layer": 2, "head": 0}],
    ids=str,
)
def test_invalid_point_is_refused(endpoints, state, point):
    with pytest.raises(UserError):
        endpoints.inspect(state, "attention-pattern", point)


def test_unknown_figure_has_no_derivation(endpoints, state):
    assert endpoints.inspect(state, "missing-pattern", {"x": 0, "y": 0}) == ""


def test_interventions_are_listed_and_applied(all_contents, state):
    plain, changed = all_contents("show", state), all_contents("show", state | {"edits": "rope.angles*zero"})
    assert (plain["changes"]["edits"], changed["changes"]["edits"]) == ([], [["rope.angles*zero", "rotation off"]])
    for part in ("strip", "attention-pattern", "next-token"):  # but the prompt is unchanged
        assert plain[part] != changed[part]


def test_changed_model_files_are_reported_and_all_is_sent(endpoints, state):
    first = endpoints.answer("show", state)
    assert first["version"].startswith("rope@") and first["contents"]["problem"] == ""
    now, before = {"version": first["version"]}, {"version": "rope@00000000"}
    for about in ("pick", "tune", "token"):
        assert endpoints.answer(about, state | now)["contents"]
        assert endpoints.answered_scope(about, state | now) == about
        assert endpoints.answered_scope(about, state | before) == "show"
    again = endpoints.answer("show", state | before)
    assert again["contents"]["problem"] == FILES_CHANGED and again["version"] == first["version"]
    assert again["contents"].keys() == first["contents"].keys()
    assert (
        endpoints.answer("show", state | {"version": "gpt@00000000"})["contents"]["problem"] == ""
    )  # the version of another model


@pytest.mark.parametrize("term", ["no such word", ""])
def test_unknown_term_is_refused(endpoints, state, term):
    with pytest.raises(UserError, match="the glossary has no"):
        endpoints.define(state, term)


def test_definition_has_values_of_requested_run(endpoints, state):
    trace = endpoints.runs.trace(RunRequest.parse(state))
    assert f"This run has {len(trace)};" in endpoints.define(state, "token")
    layer, head, _key = largest_look_back(trace, state["query"])
    elsewhere = {"layer": (layer + 1) % trace.config.num_layers, "depth": "story", "view": "looks"}
    definition = endpoints.define(state | elsewhere, "attention")  # of the head that the step shows
    assert f"In layer {layer} head {head} " in definition and "% of its attention" in definition
