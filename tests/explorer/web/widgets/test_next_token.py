"""The next-token panel: its numbers, and how the browser words them."""

import html
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from explorer.analysis.next_token import NextTokenDistribution, next_token_distribution
from explorer.explain.notation import format_number, format_percent
from explorer.state.generation_settings import GenerationSettings
from explorer.web.layout import PRESETS
from explorer.web.widgets.next_token import (
    MAX_MATCHES,
    NUM_ROWS,
    NextTokenSummary,
    NextTokenTable,
    SamplingPresetButtons,
    SecondRunPrediction,
    pack_change_effect,
    pack_other_run,
)
from model.generation.autoregressive import generate
from model.generation.sampling import sampling_distribution, sampling_stages
from tests.explorer.web.script_calls import call_script
from tests.sample_models import capture_style
from tests.subtest_loops import each_style

SETTINGS = GenerationSettings(temperature=0.9, top_k=8)


def make_pack_value(style: str) -> Callable[..., dict]:
    """Return a function that returns the widget's value at a position of the captured run: `pack_value(position)`."""
    trace = capture_style(style)

    def pack_position(position: int, settings: GenerationSettings = SETTINGS, find: str = "") -> dict:
        prediction = next_token_distribution(trace, position, settings.temperature, settings.top_k, seed=settings.seed)
        value = NextTokenTable.pack(prediction, trace.vocabulary, settings, find)
        assert json.loads(json.dumps(value, allow_nan=False)) == value
        return value

    return pack_position


def call_wording(function: str, *contents: Any) -> list[Any]:
    """Return what a function of the page's script makes of each content."""
    return call_script("static/text.js", function, *((content,) for content in contents))


@each_style
def test_every_row_has_cell_and_arithmetic_for_every_stage(trace, style):
    pack_value = make_pack_value(style)
    (value,) = call_wording("wordTable", pack_value(4))
    assert len(value["rows"]) == NUM_ROWS
    for row in value["rows"]:
        assert len(row["cells"]) == len(row["notes"]) == len(value["columns"])
        assert row["token"] == trace.vocabulary[row["token_id"]]
        assert (row["cut_by"] is not None) == (row["probability"] == 0)


@each_style
def test_actual_and_drawn_tokens_are_listed_at_any_rank(trace, style):
    pack_value = make_pack_value(style)
    for position in range(len(trace) - 1):
        value = pack_value(position)
        assert value["actual"] == trace.token_ids[position + 1]
        row_ids = {row["token_id"] for row in value["rows"]}
        assert {value["actual"], value["drawn"]} <= row_ids and len(row_ids) == NUM_ROWS
        assert value["drawn"] in {stretch["token_id"] for stretch in value["stretches"]}
    assert pack_value(len(trace) - 1)["actual"] is None


@each_style
def test_drawn_token_matches_generate(trace, style, lms):
    pack_value = make_pack_value(style)
    position = len(trace) - 1
    for seed in range(5):
        settings = replace(SETTINGS, seed=seed)
        limits = {"temperature": settings.temperature, "top_k": settings.top_k, "seed": seed}
        (step,) = generate(lms[style], trace.token_ids, max_new_tokens=1, **limits)
        value = pack_value(position, settings)
        assert (value["drawn"], value["u"]) == (step.token_id, step.u)


@each_style
def test_settings_change_segments_but_not_random_number(style):
    pack_value = make_pack_value(style)
    cold, hot = (pack_value(3, replace(SETTINGS, temperature=temperature)) for temperature in (0.0, 2.0))
    assert cold["u"] == hot["u"]
    assert [(stretch["start"], stretch["end"]) for stretch in cold["stretches"]] == [(0, 1)]
    assert len(hot["stretches"]) > 1


@each_style
def test_search_matches_are_listed_additionally(trace, style):
    pack_value = make_pack_value(style)
    before, value = pack_value(2), pack_value(2, find="e")
    matches = [row for row in value["rows"] if row["found"]]
    assert len(matches) == value["found"] == MAX_MATCHES
    assert all("e" in row["token"].lower() for row in matches)
    assert {row["token_id"] for row in before["rows"]} <= {row["token_id"] for row in value["rows"]}
    assert pack_value(2, find="no such token")["found"] == 0
    last = len(trace.vocabulary) - 1
    assert last in {row["token_id"] for row in pack_value(2, find=str(last))["rows"]}


@each_style
def test_intervention_adds_column_with_original_probability(trace, style):
    prediction = next_token_distribution(trace, 4, seed=0)
    last = int(prediction.plain.argmin())
    unchanged = np.zeros(len(trace.vocabulary))
    unchanged[last] = np.log(len(trace.vocabulary) - 1)
    other = SecondRunPrediction(prediction, trace.vocabulary, prediction.plain, prediction.sampled, unchanged, "a", 4)
    value, with_other = call_wording(
        "wordTable",
        NextTokenTable.pack(prediction, trace.vocabulary, SETTINGS, "", unchanged=unchanged, guess_id=last),
        NextTokenTable.pack(prediction, trace.vocabulary, SETTINGS, "", other=other, unchanged=unchanged),
    )
    assert [row["token_id"] for row in value["rows"] if row["guessed"]] == [last]  # and none that differs in case only
    logits = ["logit_before", "logit", "logit_change"]
    assert [column["name"] for column in value["columns"]][:5] == [*logits, "before", "model"]
    assert {row["token_id"]: row["cells"][3] for row in value["rows"]}[last] == "0.500"
    for row in value["rows"]:
        before, now, change = (float(cell.replace("−", "-")) for cell in row["cells"][:3])
        assert now == pytest.approx(trace["logits"][4, row["token_id"]], abs=0.0051)
        assert before == pytest.approx(unchanged[row["token_id"]], abs=0.0051)
        assert change == pytest.approx(now - before, abs=0.016) and ("+" in row["cells"][2]) == (change > 0)
    columns = {column["name"]: column["title"] for column in with_other["columns"]}
    names = "logit other_logit model other other_difference scaled top_k probability"
    assert " ".join(columns) == names  # no second “before”
    assert list(columns.values())[:5] == ["logit A", "logit B", "p A", "p B", "p A − B"]
    for row in with_other["rows"]:
        logit = f"{unchanged[row['token_id']]:.2f}"
        assert row["cells"][1] == logit and row["notes"][3].startswith(f"B: logit {logit}, probability ")


def describe_effects(*effects: tuple) -> list[dict[str, str]]:
    """Return the sentences on what interventions did: of arguments of `pack_change_effect`."""
    packed = [pack_change_effect(now, before, VOCABULARY, *rest) for now, before, *rest in effects]
    return call_wording("describeChangeEffect", *packed)


def test_intervention_effect_is_described_by_probabilities():
    logits = np.array([[3.0, 0, 1], [2.0, 0, 1], [0.0, 0, 1]])
    before, little, much = (
        NextTokenDistribution(sampling_distribution(row), sampling_distribution(row, temperature=0.5), None)
        for row in logits
    )
    own, (s_before, s_little, s_much) = (
        [format_percent(distribution[0]) for distribution in distributions]
        for distributions in ((before.plain, little.plain), (one.sampled for one in (before, little, much)))
    )
    neutral = [NextTokenDistribution(one.plain, one.plain, None) for one in (little, before)]
    changed, plain, story, plain_story, reversal, story_of_reversal = describe_effects(
        (little, before, logits[:2]),
        (*neutral, logits[:2]),
        (little, before, logits[:2], True),
        (*neutral, logits[:2], True),
        (much, before, logits[::2]),
        (much, before, logits[::2], True),
    )
    assert changed == {
        "words": f"Probability of “·w0” before temperature: {own[0]} → {own[1]}, logit 3.00 → 2.00. "
        f"After temperature and filters: {s_before} → {s_little}.",
        "chances": f"{s_before} → {s_little} after temperature and filters",
    }
    assert plain == {
        "words": f"Probability of “·w0”: {own[0]} → {own[1]}, logit 3.00 → 2.00.",
        "chances": f"{own[0]} → {own[1]}",
    }
    assert story == {
        "words": f"The chance that “w0” is picked: {s_before} before, {s_little} now.",
        "chances": f"“w0” {own[0]} → {own[1]} before temperature",  # 100% → 100% at temperature 0 would hide it
    }
    assert plain_story["chances"] == f"“w0” {own[0]} → {own[1]}"
    likeliest = f"“·w2” is likeliest now: {format_percent(much.plain[2])} before temperature."
    assert reversal["words"].endswith(f"After temperature and filters: {s_before} → {s_much}. {likeliest}")
    assert f"“w2” is likeliest now: {100 * much.sampled[2]:.0f}%." in story_of_reversal["words"]


def test_intervention_effect_against_the_logit_is_explained():
    """The likeliest token’s logit falls where its probability rises, and the other way round; not if both fall."""
    cases = (
        (
            [3.0, 2.0, 1.0],
            [2.5, 0.5, 0.0],
            "Its logit fell, but the others’ together (ln Σ e^logit) fell more.",
            "Its score fell",
        ),
        (
            [3.0, 2.0, 1.0],
            [3.5, 3.4, 1.0],
            "Its logit rose, but the others’ together (ln Σ e^logit) rose more.",
            "Its score rose",
        ),
        ([3.0, 2.0, 1.0], [2.0, 2.0, 1.0], "", ""),
        ([3.0, 2.0, 1.0], [4.0, 3.0, 2.0], "", ""),  # all rise alike
        ([0.0, 0, 0, 0], [0.02, 0, 0, 0], "", ""),
    )
    effects = []
    for before, after, *_texts in cases:
        logits = np.array(before), np.array(after)
        runs = [NextTokenDistribution(*[sampling_distribution(row)] * 2, None) for row in (logits[1], logits[0])]
        effects += [(*runs, logits, is_story) for is_story in (False, True)]
    texts = [effect["words"] for effect in describe_effects(*effects)]
    for (_before, after, logit, score), words, story in zip(cases, texts[::2], texts[1::2], strict=True):
        assert words.endswith(logit or f"→ {after[0]:.2f}.") and ("others’" in words) == bool(logit)
        assert score in story and ("others’" in story) == bool(score)
    assert "Probability of “·w0”: 25.0% → 25.4%, logit" in texts[-2]
    compared = {
        (0.673, 0.678): "67.3% 67.8%",
        (0.673, 0.296): "67% 30%",
        (0.012, 0.034): "1.2% 3.4%",
        (0.098, 0.123): "9.8% 12%",
        (0.0524, 0.0546): "5.24% 5.46%",
    }
    assert [*map(" ".join, call_script("static/text.js", "formatPercents", *compared))] == [*compared.values()]


def test_difference_falls_back_to_unfiltered_probabilities():
    """A has probabilities 10%, 20%, 70% and B 5%, 5%, 90%: top-k 1 leaves the last token only in both."""
    a, b = (
        NextTokenDistribution(
            np.array(plain), np.array([0.0, 0, 1]), None, SimpleNamespace(logits=np.log(plain).round(2)), 0.5
        )
        for plain in ([0.1, 0.2, 0.7], [0.05, 0.05, 0.9])
    )
    other = SecondRunPrediction(b, VOCABULARY, b.plain, b.sampled, b.stages.logits, "the", 0)
    (value,) = call_wording("wordTable", NextTokenTable.pack_difference(a, VOCABULARY, SETTINGS, "", other))
    assert [(row["token"], row["cells"]) for row in value["rows"]] == [
        (" w2", ["−0.25", "−0.200", "0"]),
        (" w1", ["+1.39", "+0.150", "0"]),
        (" w0", ["+0.70", "+0.0500", "0"]),
    ]
    assert value["rows"][1]["notes"][0] == "A −1.61 − B (−3.00) = +1.39"
    (text,) = call_wording("summarisePrediction", NextTokenSummary.pack_difference(a, VOCABULARY, other))
    assert "“·w2” differs most: A 70.0%, B 90.0%, −20.0 percentage points" in text


def test_presets_are_valid_settings_in_markup():
    widget = SamplingPresetButtons(PRESETS)
    preset_texts = re.findall(r'data-settings="([^"]*)">([^<]*)<', widget.html)
    assert {name: json.loads(html.unescape(settings)) for settings, name in preset_texts} == PRESETS
    for settings in PRESETS.values():
        assert replace(GenerationSettings(), **settings).validate()
        assert settings.keys() == PRESETS["balanced"].keys()
    assert replace(GenerationSettings(), **PRESETS["balanced"]) == GenerationSettings()


VOCABULARY = tuple(f" w{i}" for i in range(50))


@pytest.fixture
def make_falling():
    """Function that returns a prediction over 50 tokens of falling probability, 5 of which are kept."""

    def make_prediction(actual: int | None = None) -> NextTokenDistribution:
        logits = -0.1 * np.arange(50)
        return NextTokenDistribution(sampling_distribution(logits), sampling_distribution(logits, top_k=5), actual)

    return make_prediction


def test_summary_has_entropy_and_rank(make_falling):
    prediction = make_falling(actual=41)
    text, at_end, of_b = call_wording(
        "summarisePrediction",
        NextTokenSummary.pack(prediction, VOCABULARY, " w7", 6),
        NextTokenSummary.pack(make_falling(), VOCABULARY, " w7", 6),
        NextTokenSummary.pack(make_falling(), VOCABULARY, " w7", 6, "b"),
    )
    assert text.startswith("After “·w7” (position 6), 5 of 50 tokens can be sampled")
    plain_entropy = format_number(-(prediction.plain * np.log2(prediction.plain)).sum())
    assert f"Entropy {format_number(prediction.entropy)} bits; {plain_entropy} bits before temperature" in text
    assert f"“·w41”: rank 42, {format_percent(prediction.plain[41])} before temperature" in text
    assert "continues" not in at_end and of_b == f"B: {at_end}"


def test_random_draw_is_described_with_its_token():
    """The random number 0.43712 selects the second of four equally likely tokens."""
    logits = np.zeros(4)
    stages = sampling_stages(logits)
    ends = {None: ", which Step would write.", 1: ", as in the text.", 3: "; the text has “·w3”."}
    contents = []
    for actual in ends:
        prediction = NextTokenDistribution(sampling_distribution(logits), stages.probabilities, actual, stages, 0.43712)
        contents.append(NextTokenTable.pack(prediction, VOCABULARY[:4], replace(PLAIN, seed=5), ""))
    assert [content["words"] for content in call_wording("wordTable", *contents)] == [
        f"Seed 5 gives the random number u = 0.437 here. It selects “·w1”{end}" for end in ends.values()
    ]


PROBABILITIES_A, PROBABILITIES_B = np.array([0.5, 0.25, 0.25]), np.array([0.75, 0.125, 0.125])


def make_prediction(probabilities: np.ndarray) -> NextTokenDistribution:
    """Return a prediction with the random number 0.1 and no limits."""
    stages = sampling_stages(np.log(probabilities))
    return NextTokenDistribution(probabilities, probabilities, None, stages, 0.1)


def make_other_run(probabilities: np.ndarray, token: str = "") -> SecondRunPrediction:
    prediction = SimpleNamespace(sampled_token_id=0)
    return SecondRunPrediction(prediction, [token], probabilities, probabilities, 2 * probabilities, " the", 7)


def test_divergences_are_given_in_both_directions():
    """Computed by hand: ½ log₂ ⅔ + ½ log₂ 2 bits from A to B, ¾ log₂ 1½ − ¼ log₂ 2 bits from B to A."""
    a, other = make_prediction(PROBABILITIES_A), make_other_run(PROBABILITIES_B, " owl")
    certain = make_other_run(np.array([1.0, 0, 0]))
    assert pack_other_run(a, certain)["divergences"] == [None, pytest.approx(1)]  # infinite in one direction
    values = call_wording(
        "wordTable", *(NextTokenTable.pack(a, VOCABULARY[:3], PLAIN, "", run) for run in (other, certain))
    )
    text = values[0]["words"]
    assert "after “·the” (position 7), the same random number falls on “·owl”" in text
    assert "KL(A‖B) = 0.208 bits, KL(B‖A) = 0.189 bits" in text
    assert "KL(A‖B) = ∞ bits" in values[1]["words"]


def test_token_missing_in_b_is_marked():
    other = make_other_run(np.array([0.75, 0.25, np.nan]))
    value = NextTokenTable.pack(make_prediction(np.array([0.5, 0.3, 0.2])), VOCABULARY[:3], PLAIN, "", other)
    (table,) = call_wording("wordTable", value)
    assert "different tokens: no divergence" in table["words"]
    cells = {column["name"]: [row["cells"][i] for row in table["rows"]] for i, column in enumerate(table["columns"])}
    assert cells["other"] == ["0.750", "0.250", "–"]
    assert cells["other_difference"] == ["−0.250", "+0.050", "–"]
    assert cells["other_logit"] == ["1.50", "0.50", "–"]
    assert table["rows"][2]["notes"][1] == "the model of B has no such token"


PLAIN = GenerationSettings(temperature=1.0, top_k=0)
CUT, KEPT = "cut", "✓"
LOGITS = np.array([2.31, -0.5, 1.2, 0.4, -3.0, 0.4])
ALL = replace(PLAIN, temperature=0.8, top_k=5, top_p=0.9, min_p=0.3, repetition_penalty=1.2)


class WordedColumn:
    """A column of the table as the browser words it, by row."""

    def __init__(self, table: dict, index: int):
        self.title, self.about = table["columns"][index]["title"], table["columns"][index]["about"]
        self.cells, self.notes = ([row[kind][index] for row in table["rows"]] for kind in ("cells", "notes"))


@pytest.fixture
def make_table():
    """Function that returns the table's rows by rank and its columns by name: `make_table(settings)`."""

    def rows_and_columns(settings: GenerationSettings, previous=()) -> tuple[list, dict[str, WordedColumn]]:
        limits = {"top_p": settings.top_p, "min_p": settings.min_p, "repetition_penalty": settings.repetition_penalty}
        stages = sampling_stages(LOGITS, settings.temperature, settings.top_k, **limits, previous=previous)
        prediction = NextTokenDistribution(sampling_distribution(LOGITS), stages.probabilities, None, stages, 0.5)
        value = NextTokenTable.pack(prediction, VOCABULARY[: len(LOGITS)], settings, "")
        (table,) = call_wording("wordTable", value)
        names = [column["name"] for column in table["columns"]]
        return table["rows"], {name: WordedColumn(table, i) for i, name in enumerate(names)}

    return rows_and_columns


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (PLAIN, ["logit", "model", "scaled", "probability", "cumulative"]),
        (replace(PLAIN, top_k=3), ["logit", "model", "scaled", "top_k", "probability", "cumulative"]),
        (ALL, ["logit", "model", "penalised", "scaled", "top_k", "top_p", "min_p", "probability", "cumulative"]),
        (replace(ALL, temperature=0), ["logit", "model", "penalised", "argmax", "probability", "cumulative"]),
    ],
    ids=["plain", "top-k", "all", "greedy"],
)
def test_each_effective_stage_has_column(make_table, settings, names):
    rows, stages = make_table(settings)
    assert list(stages) == names
    for column in stages.values():
        assert column.title and column.about.endswith(".")
        assert len(column.notes) == len(rows) and all(column.notes)


def test_logits_are_divided_by_temperature(make_table):
    rows, stages = make_table(replace(PLAIN, temperature=0.8))
    assert stages["scaled"].title == "÷ 0.8"
    assert stages["logit"].cells == ["2.31", "1.20", "0.40", "0.40", "−0.50", "−3.00"]
    assert stages["scaled"].cells[0] == "2.89"
    assert stages["scaled"].notes[0] == "2.31 / 0.8 = 2.89"
    assert stages["scaled"].notes[-1] == "−3.00 / 0.8 = −3.75"


def test_penalty_divides_positive_and_multiplies_negative_logits(make_table):
    rows, stages = make_table(replace(PLAIN, repetition_penalty=1.2), previous=(0, 4))
    formulas = {row["token_id"]: note for row, note in zip(rows, stages["penalised"].notes, strict=True)}
    assert formulas[0].startswith("2.31 / 1.2 = 1.93:")
    assert formulas[4].startswith("−3.00 × 1.2 = −3.60:")
    assert formulas[2].startswith("1.20 stays:")


def test_probability_formula_has_weights(make_table):
    rows, stages = make_table(replace(PLAIN, temperature=0.8, top_k=3))
    formula = stages["probability"].notes[1]
    numbers = re.fullmatch(r"e\^\((\S+) − (\S+)\) / Σ = (\S+) / (\S+) = (\S+)", formula)
    scaled, largest, weight, total, result = map(float, numbers.groups())
    assert (scaled, largest) == (1.50, 2.89)
    assert weight == pytest.approx(math.exp(scaled - largest), rel=0.02)
    assert weight / total == pytest.approx(result, rel=0.02)


def test_unfiltered_probability_has_column(make_table):
    rows, stages = make_table(replace(PLAIN, temperature=0.8, top_k=3))
    shares = np.sort(np.exp(LOGITS))[::-1] / np.exp(LOGITS).sum()
    assert stages["model"].cells == [format_number(share) for share in shares]
    assert stages["model"].notes[1] == f"e^1.20 / Σ e^logits = {format_number(shares[1])}"
    assert stages["model"].notes[-1].startswith("e^(−3.00) / ")
    assert stages["probability"].title == "after the\nsettings"


def test_negative_largest_logit_is_in_brackets(make_table, monkeypatch):
    monkeypatch.setattr(f"{__name__}.LOGITS", LOGITS - 5)
    rows, stages = make_table(PLAIN)
    assert stages["probability"].notes[1].startswith("e^(−3.80 − (−2.69)) / Σ = ")


def test_cumulative_probability_is_addition(make_table):
    rows, stages = make_table(PLAIN)
    formula = stages["cumulative"].notes[1]
    before, probability, end = map(float, re.match(r"(\S+) \+ (\S+) = (\S+):", formula).groups())
    assert before == pytest.approx(rows[0]["probability"], rel=0.01)
    assert before + probability == pytest.approx(end, abs=0.002)
    assert stages["cumulative"].cells[-1] == "1.00"


def test_top_k_counts_ranks(make_table):
    rows, stages = make_table(replace(PLAIN, top_k=3))
    assert stages["top_k"].cells == [KEPT] * 3 + [CUT] * 3
    assert stages["top_k"].notes[2] == "rank 3 ≤ top-k 3: kept"
    assert stages["top_k"].notes[3] == "rank 4 > top-k 3: cut"
    assert stages["probability"].cells[3] == "0"
    assert stages["probability"].notes[3] == "cut by top-k, so never drawn"
    assert stages["cumulative"].cells[3] == ""


def test_token_cut_by_one_limit_is_not_checked_by_next(make_table):
    rows, stages = make_table(ALL)
    by_top_k = [row["cut_by"] for row in rows].index("top_k")
    assert [stages[name].cells[by_top_k] for name in ("top_k", "top_p", "min_p")] == [CUT, "", ""]
    assert stages["min_p"].notes[by_top_k] == "top-k has cut it already"


def test_top_p_compares_mass_of_more_probable_tokens(make_table):
    rows, stages = make_table(replace(PLAIN, top_p=0.7))
    shares = np.sort(np.exp(LOGITS))[::-1] / np.exp(LOGITS).sum()
    assert stages["top_p"].cells == [KEPT if s < 0.7 else CUT for s in np.cumsum([0, *shares[:-1]])]
    assert stages["top_p"].notes[1] == f"likelier ones hold {shares[0]:.3f} < top-p 0.7: kept"
    assert re.fullmatch(r"likelier ones hold 0\.\d+ ≥ top-p 0.7: cut", stages["top_p"].notes[-1])


def test_min_p_compares_with_largest_probability(make_table):
    rows, stages = make_table(replace(PLAIN, min_p=0.3))
    assert stages["min_p"].notes[1] == "e^(1.20 − 2.31) = 0.330 times the likeliest ≥ min-p 0.3: kept"
    assert stages["min_p"].notes[2] == "e^(0.40 − 2.31) = 0.148 times the likeliest < min-p 0.3: cut"


@pytest.mark.parametrize("settings", [replace(PLAIN, top_p=0.0), replace(PLAIN, min_p=1.0)], ids=["top-p", "min-p"])
def test_most_probable_token_is_never_cut(make_table, settings):
    rows, stages = make_table(settings)
    column = stages.get("top_p") or stages["min_p"]
    assert (column.cells[0], column.notes[0]) == (KEPT, "rank 1: always kept")


def test_temperature_0_takes_largest_logit(make_table):
    rows, stages = make_table(replace(PLAIN, temperature=0.0))
    assert stages["argmax"].cells == [KEPT] + [CUT] * 5
    assert stages["probability"].notes[0] == "the largest, so its probability is 1"
    assert stages["probability"].notes[1] == "cut, so never drawn"
