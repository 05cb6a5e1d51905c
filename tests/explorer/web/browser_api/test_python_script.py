"""Scripts that reproduce what the page shows: they are executed and draw the same."""

from dataclasses import replace
from functools import partial
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest

from explorer.analysis.logit_lens import single_token_ranks
from explorer.interventions import parse_interventions
from explorer.python_api import ModelPage, load, shared_library
from explorer.state.page_state import PageState, RunRequest
from explorer.state.selection import Selection
from explorer.tracing.run_service import RunService
from explorer.views import VIEW_BY_NAME
from explorer.views.labels import target_token
from explorer.views.selection import complete_selection
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.open_view import make_open_view
from explorer.web.browser_api.page_contents import figure_payload
from explorer.web.browser_api.python_script import python_script, python_text_literal
from tests.subtest_loops import subtest_each

MODEL, TEXT, OTHER = "llama-fables", "Once upon a time there was a fox.", "Once upon a time there was an owl."
EDITS = "blocks.4.attn.z.4*zero~blocks.1.ffn.hidden*scale*2"
# view, panel, fields of the selection, interventions, text of B, interventions of B
STATES = [
    ("attention", "pattern", {"layer": 2, "head": 1, "query": 5, "key": 3, "neuron": 7, "depth": "code"}, "", "", ""),
    ("attention", "pattern", {"heads": "1.1~2.3", "pattern": "chosen_mean", "head": 3}, EDITS, "", ""),
    ("attention", "scores", {"head_score": "induction", "first_token": "hidden"}, "", "", ""),
    ("prediction", "heads", {"query": 4, "target": 3, "rival": 2}, EDITS, "", ""),
    ("residual", "lengths", {}, "", "", ""),
    ("experiments", "pattern_change", {}, EDITS, "", ""),
    ("attention", "row", {"shown": "difference", "query": 6}, "", OTHER, ""),
    ("attention", "row", {"shown": "b", "layer": 0, "head": 1}, "blocks.1.attn.z.1@3-5*patch", OTHER, EDITS),
    ("prediction", "path", {"shown": "a"}, "embed*patch_mean", OTHER, "blocks.2.attn.out*patch"),
    ("compare", "streams", {}, "", OTHER, ""),
]


@pytest.fixture(scope="module")
def runs() -> RunService:
    return RunService(shared_library("cpu", None))


@pytest.fixture
def execute(monkeypatch):
    """Function that executes a script and returns the figure or page that it shows."""
    monkeypatch.setattr("explorer.load", partial(load, device="cpu"), raising=False)

    def run_script(script: str):
        lines, names = script.rstrip().split("\n"), {}
        is_page = lines[-1].endswith(".launch()")
        exec("\n".join(lines[: -1 if is_page else lines.index("figure.show()")]), names)
        return eval(lines[-1].removesuffix(".launch()"), names) if is_page else names["figure"]

    return run_script


def make_state(runs, view, fields, edits="", other_text="", other_edits="") -> PageState:
    run, other = (
        text and replace(PageStateBuilder(runs).create_run(MODEL, text), edits=parse_interventions(texts))
        for text, texts in ((TEXT, edits), (other_text, other_edits))
    )
    page_state = PageState(run, Selection(), other=other or None)
    selection = complete_selection(runs.trace(page_state.run), {"view": view} | fields)
    return replace(page_state, selection=selection)


@subtest_each(("view", "panel", "fields", "edits", "other", "other_edits"), STATES)
def test_script_draws_figure_of_page(runs, execute, view, panel, fields, edits, other, other_edits):
    page_state = make_state(runs, view, fields, edits, other, other_edits)
    open_view = make_open_view(runs, page_state)
    (expected,) = (open_view.draw(one) for one in VIEW_BY_NAME[view].panels if one.name == panel)
    script = python_script(runs, page_state, f"{view}-{panel}")
    if fields.get("shown") == "a":  # A's data without B, whose numbers only the axes of the page regard
        assert figure_payload(execute(script))[0] == figure_payload(expected)[0]
        assert "compare(" not in script and "figure = run.figure(" in script and "shown" not in script
        return
    assert figure_payload(execute(script)) == figure_payload(expected)
    if fields.get("shown") == "b":  # like B's figure next to A's
        both = replace(page_state, selection=replace(page_state.selection, shown="both"))
        assert python_script(runs, both, f"{view}-{panel}-b") == script
    variables = [line.split(" = ")[0] for line in script.split("\n") if " = " in line]
    assert len(variables) == len(set(variables))


def test_script_has_only_non_default_fields(runs):
    page_state = make_state(runs, "attention", {"layer": 2, "head": 1, "key": 3, "neuron": 7, "find": "x"}, EDITS)
    assert python_script(runs, page_state, "attention-row") == (
        "# Install first, in a copy of the project: pip install .\nimport explorer\n\n"
        'model = explorer.load("llama-fables")\n'
        'run = model.run("Once upon a time there was a fox.", '
        'interventions=["blocks.4.attn.z.4*zero", "blocks.1.ffn.hidden*scale*2"])\n'
        'figure = run.figure("attention", "row", layer=2, head=1, query=8, key=3)\nfigure.show()\n'
        "numbers = [trace.y for trace in figure.data]  # what the figure draws\n"
    )
    plain = python_script(runs, make_state(runs, "attention", {}), "next-token")
    assert plain.endswith('figure = run.figure("attention", "heads")\nfigure.show()\n')  # the first figure of the view


def test_script_ends_with_array_of_numbers(runs, monkeypatch):
    monkeypatch.setattr("explorer.load", partial(load, device="cpu"), raising=False)
    page_state = make_state(runs, "attention", {"layer": 2, "head": 1})
    names = {}
    exec(python_script(runs, page_state, "attention-pattern").replace("figure.show()", ""), names)
    trace = runs.trace(page_state.run)
    np.testing.assert_allclose(np.tril(np.nan_to_num(names["numbers"])), trace["blocks.2.attn.pattern"][1], atol=1e-6)
    page_state = make_state(runs, "prediction", {"lens": "rank"})  # coloured by the logarithm
    script = python_script(runs, page_state, "prediction-lens")
    assert script.endswith("numbers = figure.data[0].customdata  # rank (explained)\n")
    exec(script.replace("figure.show()", ""), names)
    likeliest = target_token(trace, page_state.selection)
    np.testing.assert_array_equal(names["numbers"], single_token_ranks(trace, range(len(trace)), likeliest))


@pytest.mark.parametrize(
    ("view", "panel", "fields"),
    [("overview", "", {"layer": 3, "query": 4}), ("attention", "table", {"head": 2, "first_token": "hidden"})],
)
def test_script_of_custom_figure_opens_page(runs, execute, view, panel, fields):
    page_state = make_state(runs, view, fields, EDITS)
    page = execute(python_script(runs, page_state, f"{view}-{panel}"))
    assert isinstance(page, ModelPage)
    opened = PageStateBuilder(runs).state_from_query(dict(parse_qsl(urlsplit(page.url).query)))
    assert opened.run == page_state.run
    unfolded = f"{view}-{panel}" * bool(panel)
    assert opened.selection == replace(page_state.selection, unfolded=unfolded, depth=opened.selection.depth)


def test_text_is_escaped_as_literal():
    for text in (
        "It's",
        'say "no"',
        'It\'s "both"',
        "a\nb\r\tc",
        "\\n {x} ${y}",
        '"""',
        "é 狐 🦊",
        "\u202e\u2028\x00",
        " ",
    ):
        literal = python_text_literal(text)
        assert eval(literal) == text and literal.isprintable(), text


def test_prompt_is_text_if_it_encodes_to_same_tokens(runs, execute):
    _lm, tokenizer = runs.model(MODEL)
    for text in ("He said “no”.\n\n\"It's 3 o'clock\", \\", "é 狐"):
        ids = tuple(tokenizer.encode(text))
        state = PageState(RunRequest(MODEL, ids[:2], ids[2:]), Selection(view="attention"))  # some tokens are generated
        script = python_script(runs, state)
        assert python_text_literal(text) in script and execute(script)
    letters = tuple(token_id for letter in "there" for token_id in tokenizer.encode(letter))
    assert tuple(tokenizer.encode("there")) != letters
    script = python_script(runs, PageState(RunRequest(MODEL, letters[:3], letters[3:]), Selection(view="attention")))
    assert f"model.run({[*letters]})" in script and execute(script)


def test_differences_to_page_are_noted_in_script(runs):
    ids = tuple(runs.model(MODEL)[1].encode(TEXT))
    run = RunRequest(MODEL, ids[:-2], ids[-2:], edits=parse_interventions("blocks.1.attn.z.1*mean"))
    assert "# Means and patches cover the whole text" in python_script(runs, PageState(run, Selection()))
