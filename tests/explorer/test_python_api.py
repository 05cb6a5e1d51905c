"""Python API: `explorer.load` agrees with the functions that it uses."""

import pickle
from urllib.parse import parse_qsl, urlsplit

import httpx
import numpy as np
import pytest

import explorer
from explorer import activation_patching, capture, make_intervention
from explorer.errors import UserError
from explorer.lessons.example_prompts import PROMPT_PAIRS
from explorer.run_figures import select_with_defaults
from explorer.tracing.comparison import Comparison
from explorer.tracing.run_service import RunService
from explorer.views import attention
from explorer.views.run_difference_figures import residual_distance_map
from explorer.web.actions.page_state_builder import PageStateBuilder
from model import CheckpointError, generate, load_checkpoint
from model.checkpoint import CHECKPOINTS
from tests.course import course_model
from tests.subtest_loops import subtest_each

TEXT = "Once upon a time there was a fox"


@pytest.fixture(scope="module")
def model():
    return explorer.load("llama-fables", device="cpu")


@pytest.fixture(scope="module")
def checkpoint():
    return load_checkpoint("llama-fables")


@pytest.fixture(scope="module")
def run(model):
    return model.run(TEXT)


@pytest.fixture(scope="module")
def ablated_run(model, run):
    return model.run(run.text, interventions=["blocks.4.attn.z[4]*zero"])


def test_names_are_listed_and_unknown_ones_suggest_nearest():
    assert {"load", "capture", "from_module", "activation_patching"} <= set(dir(explorer))
    assert all(getattr(explorer, name) is not None for name in explorer.__all__)
    assert all((getattr(explorer, name).__doc__ or "").strip() for name in explorer.__all__)
    with pytest.raises(AttributeError, match="did you mean capture"):
        explorer.captur  # noqa: B018


def test_run_is_a_trace_with_captured_values(run, checkpoint):
    lm, tokenizer = checkpoint
    trace = capture(lm, tokenizer.encode(TEXT), tokenizer=tokenizer)
    assert isinstance(run, explorer.Trace) and run.text == TEXT and run.tokens == trace.tokens
    assert list(run.values) == list(trace.values) == run._ipython_key_completions_()
    for name in ("blocks.3.attn.pattern", "logits"):
        np.testing.assert_array_equal(run[name], trace[name])
    with pytest.raises(KeyError, match="blocks.3.attn.pattern"):
        run["blocks.3.attn.patern"]


def test_models_and_runs_are_cached(model, run, ablated_run):
    assert model.run(TEXT)["logits"] is run["logits"] is ablated_run.baseline["logits"]
    for same in ("llama-fables", CHECKPOINTS / "llama-fables", CHECKPOINTS / "llama-fables" / "model.safetensors"):
        assert explorer.load(same, device="cpu").lm is model.lm


def test_interventions_can_be_texts_or_objects(model, run, ablated_run, checkpoint):
    lm, tokenizer = checkpoint
    edit = make_intervention("blocks.4.attn.z", "zero", index=4)
    trace = capture(lm, run.token_ids, [edit], tokenizer=tokenizer)
    np.testing.assert_array_equal(ablated_run["logits"], trace["logits"])
    for interventions in ("blocks.4.attn.z.4*zero", edit, [edit], ["blocks.4.attn.z[4]@0-*zero"]):
        np.testing.assert_array_equal(model.run(TEXT, interventions)["logits"], trace["logits"])
    other = model.run("Once upon a day there was a fox")
    patch = make_intervention("blocks.1.attn.z", "patch", index=1, source=other)
    expected = capture(lm, run.token_ids, [patch], tokenizer=tokenizer)
    np.testing.assert_array_equal(model.run(TEXT, [patch])["logits"], expected["logits"])


def test_figure_equals_page_figure(run):
    figure = run.figure("attention", layer=4, head=4)
    assert figure == attention.pattern_heatmap(run, 4, 4, len(run) - 1, run["blocks.4.attn.pattern"][4, -1].argmax())
    assert figure == run.figure("attention", "pattern", layer=4, head=4, query=len(run) - 1)
    assert run.figure("attention", layer=np.int64(4), head=4) == figure
    assert callable(figure.show) and "<div" in figure._repr_html_()


def test_figure_defaults_equal_page_defaults(model, run):
    factory = PageStateBuilder(RunService(model.library))
    query = {"checkpoint": "llama-fables", "text": TEXT, "view": "feed_forward"}
    selection = factory.state_from_query(query).selection
    assert run.figure("feed_forward", "curve") == run.figure(
        "feed_forward", "curve", layer=selection.layer, neuron=selection.neuron, query=selection.query
    )
    assert select_with_defaults(run, {"view": "feed_forward"}) == selection


def test_every_listed_figure_can_be_drawn(run, ablated_run):
    for source in (run, ablated_run.compare(run)):
        names = source.figures
        assert names["attention"][0] == "pattern" and "heads" in names["attention"]
        for view, panels in names.items():
            for panel in panels:
                options = {} if source is run or view == "compare" else {"shown": "a"}
                assert source.figure(view, panel, **options).to_plotly_json()["data"], (view, panel)
    assert "compare" not in run.figures and "compare" in ablated_run.compare(run).figures
    assert set(ablated_run.figures["experiments"]) - set(run.figures["experiments"])


def test_head_grid_contains_each_pattern(run):
    (heatmap,) = run.figure("attention", "heads").traces_and_layout[0]
    side = len(run) + 1
    square = heatmap["z"][4 * side : 5 * side - 1, 2 * side : 3 * side - 1]
    np.testing.assert_array_equal(square, run["blocks.4.attn.pattern"][2])


@subtest_each(
    ("arguments", "selection", "said"),
    [
        (("atention",), {}, "no view 'atention'; the nearest are attention"),
        (("attention", "patern"), {}, "no panel 'patern'; the nearest are pattern"),
        (("attention",), {"laier": 1}, "no field 'laier' to select; the nearest are layer"),
        (("attention",), {"layer": 9}, "no layer=9; the nearest is 5"),
        (("attention",), {"layer": "4"}, "layer is a value such as 0, got '4'"),
        (("attention",), {"pattern": "wait"}, "no pattern='wait'; the nearest is 'weight'"),
        (("compare",), {}, "it compares two runs, run.compare"),
        (("overview", "map"), {}, "model.page"),
    ],
)
def test_invalid_figure_argument_suggests_nearest(run, arguments, selection, said):
    with pytest.raises(UserError) as error:
        run.figure(*arguments, **selection)
    assert said in str(error.value)


def test_runs_can_be_compared(run, ablated_run):
    comparison = ablated_run.compare(run)
    assert isinstance(comparison, Comparison) and comparison.is_unchanged and comparison.runs == (ablated_run, run)
    assert comparison.figure() == residual_distance_map(comparison, len(run) - 1)
    assert "A and B first differ at blocks.4.attn.z" in str(comparison) and "<pre>" in comparison._repr_html_()
    difference = ablated_run["blocks.5.attn.pattern"] - run["blocks.5.attn.pattern"]
    (heatmap,) = comparison.figure("attention", layer=5, head=0).traces_and_layout[0]
    np.testing.assert_allclose(np.nan_to_num(heatmap["z"]), np.tril(difference[0]), atol=1e-7)


def test_runs_have_html_and_repr(model, run, ablated_run):
    html = ablated_run._repr_html_()
    assert "·upon" in html and "blocks.4.attn.z.4*zero" in html and html.count("<tr>") == 5
    assert "<b>" not in model.run("a <b> c")._repr_html_()
    assert repr(model).startswith("<Model llama-fables: 6 layers") and TEXT in repr(run)


def test_pickled_run_leaves_out_its_model(ablated_run):
    loaded = pickle.loads(pickle.dumps(ablated_run))
    assert loaded.owner is None and (loaded.text, loaded.edits) == (ablated_run.text, ablated_run.edits)
    np.testing.assert_array_equal(loaded["logits"], ablated_run["logits"])


def test_model_generate_equals_generate(model, checkpoint):
    lm, tokenizer = checkpoint
    ids = tokenizer.encode("Once upon a time")
    options = {"max_new_tokens": 40, "temperature": 0.8, "top_k": 40, "seed": 0}
    steps = generate(lm, ids, stop_tokens=tokenizer.eos_ids, **options)
    assert model.generate("Once upon a time", **options) == tokenizer.decode([step.token_id for step in steps])
    changed = model.generate("Once upon a time", **options, interventions="blocks.1.attn.out*zero")
    assert changed != model.generate("Once upon a time", **options)
    assert model.generate("Once upon a time", stop="there", temperature=0).endswith("there")
    with pytest.raises(UserError, match="temperature must be 0 to 2"):
        model.generate("Once", temperature=3)


@pytest.mark.parametrize("component", ["attn.z", "resid_pre"])
def test_model_patch_equals_activation_patching(model, checkpoint, component):
    lm, tokenizer = checkpoint
    pair = PROMPT_PAIRS[1]
    clean, corrupted = (tokenizer.encode(text) for text in (pair.clean, pair.corrupted))
    answer, wrong = (tokenizer.vocabulary.index(text) for text in (pair.answer, pair.wrong))
    expected = activation_patching(lm, clean, corrupted, answer, wrong, part=component)
    effects = model.patch(pair.clean, pair.corrupted, pair.answer, pair.wrong, component=component)
    np.testing.assert_allclose(effects, expected, atol=1e-5)
    assert effects.shape == (6, 6 if component == "attn.z" else len(clean))


def test_invalid_tokens_and_components_are_refused(model):
    with pytest.raises(UserError, match="wanted one of .*attn.z.*, got 'attn.zz'"):
        model.patch("a cat", "a dog", " She", " He", component="attn.zz")
    with pytest.raises(UserError, match="' Sheherazade' is no single token of this model, but ' She'"):
        model.patch("a cat", "a dog", " Sheherazade", " He")
    with pytest.raises(CheckpointError, match="there is no checkpoint 'llama-fable'; there are: llama-fables"):
        explorer.load("llama-fable")


def test_page_opens_a_run(model, run, ablated_run):
    page = model.page(ablated_run.compare(run), view="attention", layer=4, head=4)
    query = dict(parse_qsl(urlsplit(page.url).query))
    factory = PageStateBuilder(RunService(model.library))
    state = factory.state_from_query(query)
    assert state.run.token_ids == state.other.token_ids == run.token_ids
    assert state.run.edits == ablated_run.interventions and not state.other.edits
    assert state.selection == select_with_defaults(ablated_run, {"view": "attention", "layer": 4, "head": 4})
    assert factory.runs.trace(state.run)["logits"] is ablated_run["logits"]
    try:
        launched = page.launch(prevent_thread_lock=True, server_port=None)
        assert launched is page and httpx.get(page.url).status_code == 200
        assert page.url.startswith(page.blocks.local_url) and page.url in page._repr_html_().replace("&amp;", "&")
    finally:
        page.close()
    with pytest.raises(UserError, match="no view 'x'"):
        model.page(run, view="x")


def test_page_of_patched_run_includes_its_source(model, run):
    other = model.run("Once upon a day there was a fox")
    patched = model.run(TEXT, [make_intervention("blocks.1.attn.z", "patch", index=1, source=other)])
    query = dict(parse_qsl(urlsplit(model.page(patched).url).query))
    factory = PageStateBuilder(RunService(model.library))
    state = factory.state_from_query(query)
    np.testing.assert_array_equal(factory.runs.trace(state.run)["logits"], patched["logits"])


def test_page_compares_two_models(model, run):
    twin = explorer.load("llama-fables-gpt", device="cpu")
    query = dict(parse_qsl(urlsplit(model.page(run.compare(twin.run(TEXT))).url).query))
    state = PageStateBuilder(RunService(model.library)).state_from_query(query)
    assert (state.run.checkpoint, state.other.checkpoint) == ("llama-fables", "llama-fables-gpt")
    with pytest.raises(UserError, match="another model"):
        twin.page(run)


def test_long_text_is_cut_to_context_length(model):
    text = "the fox and " * 200
    run = model.run(text)
    assert len(run) <= model.lm.config.context_length
    assert run.dropped + len(run) == len(model.tokenizer.encode(text))
    query = dict(parse_qsl(urlsplit(model.page(run).url).query))
    state = PageStateBuilder(RunService(model.library)).state_from_query(query)
    assert (state.run.token_ids, state.run.dropped) == (run.token_ids, run.dropped)


def test_user_module_can_be_run_and_opened():
    with pytest.raises(UserError, match="explorer.from_module"):
        explorer.load(course_model())
    lm = explorer.from_module(course_model(), example_ids=[1, 2, 3])
    model = explorer.load(lm, device="cpu")
    run = model.run([1, 2, 3], "blocks.0.attn.z[1]*zero")
    np.testing.assert_array_equal(run.baseline["logits"], capture(lm, [1, 2, 3])["logits"])
    assert run.figure("attention").to_plotly_json()["data"] and run.text == model.tokenizer.decode([1, 2, 3])
    query = dict(parse_qsl(urlsplit(model.page(run).url).query))
    state = PageStateBuilder(RunService(model.library)).state_from_query(query)
    np.testing.assert_allclose(RunService(model.library).trace(state.run)["logits"], run["logits"], atol=1e-5)
