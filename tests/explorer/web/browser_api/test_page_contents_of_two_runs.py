"""Page contents around the tabs when there are two runs."""

import json
from itertools import product

import numpy as np
import pytest

from explorer.analysis.next_token import kl_divergence
from explorer.explain.notation import format_number
from explorer.state.generation_settings import GenerationSettings
from explorer.state.page_state import PageState
from explorer.state.selection import Selection
from explorer.tracing.run_service import RunService
from explorer.views import VIEW_BY_NAME
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.endpoints import BrowserEndpoints
from model.generation.sampling import draw_token, sampling_stages, uniform_draw

TEXTS = "the fox asked the owl", "the fox and then the owl asked the owl"
SETTINGS = {"temperature": 0.9, "top_k": 30, "seed": 3}


@pytest.fixture(scope="module")
def endpoints(library) -> BrowserEndpoints:
    return BrowserEndpoints(RunService(library))


@pytest.fixture(scope="module")
def state(endpoints) -> dict:
    first, second = (PageStateBuilder(endpoints.runs).create_run("rope", text) for text in TEXTS)
    page_state = PageState(first, Selection(view="attention", query=4, key=1), other=second)
    return page_state.as_dict() | SETTINGS


@pytest.fixture(scope="module")
def contents(endpoints, state) -> dict:
    return endpoints.answer("show", state)["contents"]


@pytest.fixture(scope="module")
def traces(endpoints, state):
    page_state = PageState.parse(state)
    return endpoints.runs.trace(page_state.run), endpoints.runs.trace(page_state.other)


def surprisal_bits(trace) -> list[float]:
    logits = trace["logits"].astype(np.float64)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return [np.nan] + [-log_p[i - 1, token] / np.log(2) for i, token in list(enumerate(trace.token_ids))[1:]]


def test_both_strips_are_shaded_by_difference_of_surprisals(endpoints, state, contents, traces):
    partners = endpoints.runs.comparison(PageState.parse(state)).alignment.partners
    bits_a, bits_b = map(surprisal_bits, traces)
    first, second = (contents[strip]["shades"]["change"] for strip in ("strip", "strip-b"))
    assert [tuple(contents[strip]["tokens"]) for strip in ("strip", "strip-b")] == [run.tokens for run in traces]
    changes = {i: bits_a[i] - bits_b[p] for i, p in enumerate(partners) if i and p}
    largest = max(1.0, *map(abs, changes.values()))
    for i, partner in enumerate(partners):
        expected = changes.get(i, 0.0) / largest
        assert first["shares"][i] == pytest.approx(expected, abs=2e-3)
        if partner is not None:
            assert second["shares"][partner] == pytest.approx(expected, abs=2e-3)
            assert first["words"][i] == second["words"][partner]
    unaligned = [i for i in range(len(bits_b)) if i not in partners]
    assert unaligned and all(second["shares"][i] == 0 and "no partner" in second["words"][i] for i in unaligned)


def test_both_distributions_share_random_number(endpoints, state, contents, traces):
    table, partners = contents["next-token"], endpoints.runs.comparison(PageState.parse(state)).alignment.partners
    partner = partners[4]
    p, q = (np.exp(t["logits"][i].astype(float)) for t, i in zip(traces, (4, partner), strict=True))
    p, q = p / p.sum(), q / q.sum()
    assert table["run"] == "a"
    for row in table["rows"]:
        token_id = row["token_id"]
        assert row["plain"] == pytest.approx(p[token_id], rel=1e-5)
        logit = traces[1]["logits"][partner, token_id]
        assert row["other"] == pytest.approx({"logit": logit, "plain": q[token_id]}, rel=1e-5)
    settings = GenerationSettings.parse(state)
    stages = sampling_stages(
        traces[1]["logits"][partner], settings.temperature, settings.top_k, previous=traces[1].token_ids[: partner + 1]
    )
    u = uniform_draw(settings.seed, 5)  # of A's next position, whatever B's is
    assert table["u"] == u and partner != 4
    assert table["other"]["token"] == traces[1].vocabulary[draw_token(stages.probabilities, u)]
    assert table["other"]["divergences"] == pytest.approx([kl_divergence(p, q), kl_divergence(q, p)], rel=1e-5)


def next_token_distributions(endpoints, state, traces) -> list[list[np.ndarray]]:
    """Return the probabilities of A and of B: the model's own, and those after temperature and filters."""
    partner = endpoints.runs.comparison(PageState.parse(state)).alignment.partners[4]
    settings = GenerationSettings.parse(state)
    both = []
    for trace, position in zip(traces, (4, partner), strict=True):
        own = np.exp(trace["logits"][position].astype(float))
        stages = sampling_stages(
            trace["logits"][position], settings.temperature, settings.top_k, previous=trace.token_ids[: position + 1]
        )
        both.append([own / own.sum(), stages.probabilities])
    return both


def test_table_of_b_shows_its_own_run(endpoints, state, traces):
    contents, (_a, (own, sampled)) = (
        endpoints.answer("show", state | {"shown": "b"})["contents"],
        next_token_distributions(endpoints, state, traces),
    )
    table = contents["next-token"]
    assert table["run"] == contents["next-token-words"]["run"] == "b"
    assert [row["token_id"] for row in table["rows"][:5]] == np.argsort(-own, kind="stable")[:5].tolist()
    for row in table["rows"]:
        assert row["plain"] == pytest.approx(own[row["token_id"]], rel=1e-5)
        assert row["probability"] == pytest.approx(sampled[row["token_id"]], abs=1e-6)
    assert contents["brief"] == endpoints.answer("show", state)["contents"]["brief"]  # Step continues A


def test_difference_table_is_sorted_by_size(endpoints, state, traces):
    contents, both = (
        endpoints.answer("show", state | {"shown": "difference"})["contents"],
        next_token_distributions(endpoints, state, traces),
    )
    sampled = both[0][1] - both[1][1]
    partner = endpoints.runs.comparison(PageState.parse(state)).alignment.partners[4]
    logits = traces[0]["logits"][4], traces[1]["logits"][partner]
    table = contents["next-token"]
    assert table["run"] == "difference" and table["drawn"] is None
    for rank, row in enumerate(table["rows"], 1):
        i = row["token_id"]
        for name, run_logits, (own, after) in zip("ab", logits, both, strict=True):
            expected = {"logit": run_logits[i], "model": own[i], "probability": after[i]}
            assert row[name] == pytest.approx(expected, rel=1e-5, abs=1e-7)
        assert row["rank"] == rank
    sizes = [abs(sampled[row["token_id"]]) for row in table["rows"]]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == pytest.approx(np.abs(sampled).max())
    words, first = contents["next-token-words"], table["rows"][0]
    assert words["token"] == first["token"] and not words["is_own"]
    assert [words["a"], words["b"]] == [first["a"]["probability"], first["b"]["probability"]]


def test_headings_name_what_is_subtracted(endpoints, state):
    for run_shown, heading in (("a", "{title}"), ("b", "{title}"), ("difference", "Difference A − B: {title}")):
        contents = endpoints.answer("show", state | {"shown": run_shown})["contents"]
        for name, title in {
            "heads": next(panel.title for panel in VIEW_BY_NAME["attention"].panels if panel.name == "heads"),
            "pattern": f"Layer {state['layer']} head {state['head']}: who looks at whom",
        }.items():
            title = title[0].lower() + title[1:] if run_shown == "difference" else title
            assert contents[f"attention-{name}-heading"] == heading.format(title=title)
    layout = json.loads(contents["attention-pattern"][1])
    data = json.loads(contents["attention-pattern"][0])
    assert "weight, A − B" in json.dumps([data, layout], ensure_ascii=False)


def test_figures_of_both_runs_have_common_scale(endpoints, state):
    """Each is what "a" or "b" shows; a figure of the comparison itself has no counterpart."""
    for view, stage in product(VIEW_BY_NAME.values(), range(3)):
        if view.group in ("own", "story"):
            continue
        own, other, both = (
            endpoints.answer("show", state | {"view": view.name, "shown": visible_run, "unfolded": "all"}, stage)[
                "contents"
            ]
            for visible_run in ("a", "b", "both")
        )
        for panel in view.panels:
            figure = f"{view.name}-{panel.name}"
            assert (figure in own) == (f"{figure}-b" in both), figure
            for suffix in ("", "-mark"):
                assert both.get(figure + suffix) == own.get(figure + suffix), figure
                expected = None if panel.compared_run else other.get(figure + suffix)
                assert both.get(f"{figure}-b{suffix}") == expected, figure
            if not panel.compared_run and f"{figure}-heading" in own:
                assert both[f"{figure}-heading"] == f"A: {own[f'{figure}-heading']}"
                assert both[f"{figure}-b-heading"] == f"B: {other[f'{figure}-heading']}"


def test_both_strips_follow_generation(endpoints, state):
    contents = endpoints.answer("token", state | {"generated": [5, 6], "b.prompt": []})["contents"]
    assert len(contents["strip"]["tokens"]) == len(contents["strip-b"]["tokens"]) == len(state["prompt"]) + 2
    assert set(contents["strip"]["shades"]) == {"change"}


def test_single_run_has_all_shadings(endpoints, state):
    single_run_state = {name: value for name, value in state.items() if not name.startswith("b.")}
    contents = endpoints.answer("show", single_run_state)["contents"]
    assert contents["strip-b"] is None and contents["runs"]["two"] is None
    assert set(contents["strip"]["shades"]) == {"surprisal", "entropy", "rank"}


def test_click_in_figure_of_b_explains_values_of_b(endpoints, state):
    """A click on a figure of B, or of the difference, explains the values of the runs that the figure shows."""
    comparison = endpoints.runs.comparison(PageState.parse(state))
    partner = comparison.alignment.partners[4]
    for visible_run, (x, y), weights in (
        ("a", (1, 4), [comparison.trace["blocks.0.attn.pattern"][0, 4, 1]]),
        ("b", (1, partner), [comparison.other["blocks.0.attn.pattern"][0, partner, 1]]),
        (
            "difference",
            (1, 4),
            [
                comparison.trace["blocks.0.attn.pattern"][0, 4, 1],
                comparison.other["blocks.0.attn.pattern"][0, partner, comparison.alignment.partners[1]],
            ],
        ),
    ):
        explanation = endpoints.inspect(state | {"shown": visible_run}, "attention-pattern", {"x": x, "y": y})
        assert all(f"= {format_number(weight)}" in explanation for weight in weights), visible_run
        assert explanation.startswith("A: ") is (visible_run == "difference")
        if visible_run != "difference":
            figure = "attention-pattern" + "-b" * (visible_run == "b")
            beside = endpoints.inspect(state | {"shown": "both"}, figure, {"x": x, "y": y})
            assert beside == f"{visible_run.upper()}: {explanation}"


def test_badges_of_difference_combine_both_runs(endpoints, state):
    marks = [
        endpoints.answer("show", state | {"shown": visible_run}, 2)["contents"]["attention-pattern-mark"]["words"]
        for visible_run in ("a", "b", "difference")
    ]
    assert marks[2] in (f"A: {marks[0]}; B: {marks[1]}", marks[0])
