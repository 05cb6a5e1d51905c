"""Cell texts of the sampling table, compared with the numbers of the stages."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from explorer.analysis.next_token import SamplingTable
from explorer.explain.notation import format_number
from explorer.state.generation_settings import GenerationSettings
from explorer.web.widgets.next_token.table import CUT, KEPT, StageColumn, stage_columns
from model.generation.sampling import sampling_stages

PLAIN = GenerationSettings(temperature=1.0, top_k=0)
LOGITS = np.array([2.31, -0.5, 1.2, 0.4, -3.0, 0.4])
ALL = replace(PLAIN, temperature=0.8, top_k=5, top_p=0.9, min_p=0.3, repetition_penalty=1.2)


@pytest.fixture
def show_table():
    """Function that returns the table's rows by rank and its columns by name: `shown(settings)`."""

    def rows_and_columns(settings: GenerationSettings, previous=()) -> tuple[list, dict[str, StageColumn]]:
        limits = {"top_p": settings.top_p, "min_p": settings.min_p, "repetition_penalty": settings.repetition_penalty}
        stages = sampling_stages(LOGITS, settings.temperature, settings.top_k, **limits, previous=previous)
        table = SamplingTable(stages)
        return table.rows(len(LOGITS)), {column.name: column for column in stage_columns(table, settings)}

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
def test_there_is_a_column_for_each_stage_that_does_something(show_table, settings, names):
    rows, stages = show_table(settings)
    assert list(stages) == names
    for column in stages.values():
        assert column.title and column.description.endswith(".")
        for row in rows:
            assert isinstance(column.cell(row), str) and column.arithmetic(row)


def test_logits_are_divided_by_the_temperature(show_table):
    rows, stages = show_table(replace(PLAIN, temperature=0.8))
    assert stages["scaled"].title == "÷ 0.8"
    assert [stages["logit"].cell(row) for row in rows] == ["2.31", "1.20", "0.40", "0.40", "−0.50", "−3.00"]
    assert stages["scaled"].cell(rows[0]) == "2.89"
    assert stages["scaled"].arithmetic(rows[0]) == "2.31 / 0.8 = 2.89"
    assert stages["scaled"].arithmetic(rows[-1]) == "−3.00 / 0.8 = −3.75"


def test_the_penalty_divides_what_is_positive_and_multiplies_what_is_negative(show_table):
    rows, stages = show_table(replace(PLAIN, repetition_penalty=1.2), previous=(0, 4))
    formulas = {row.token_id: stages["penalised"].arithmetic(row) for row in rows}
    assert formulas[0].startswith("2.31 / 1.2 = 1.93:")
    assert formulas[4].startswith("−3.00 × 1.2 = −3.60:")
    assert formulas[2].startswith("1.20 stays:")


def test_probability_is_worked_out_from_weights(show_table):
    rows, stages = show_table(replace(PLAIN, temperature=0.8, top_k=3))
    formula = stages["probability"].arithmetic(rows[1])
    numbers = re.fullmatch(r"e\^\((\S+) − (\S+)\) / Σ = (\S+) / (\S+) = (\S+)", formula)
    scaled, largest, weight, total, result = map(float, numbers.groups())
    assert (scaled, largest) == (1.50, 2.89)
    assert weight == pytest.approx(math.exp(scaled - largest), rel=0.02)
    assert weight / total == pytest.approx(result, rel=0.02)


def test_the_models_own_probability_stands_beside(show_table):
    rows, stages = show_table(replace(PLAIN, temperature=0.8, top_k=3))
    shares = np.sort(np.exp(LOGITS))[::-1] / np.exp(LOGITS).sum()
    assert [stages["model"].cell(row) for row in rows] == [format_number(share) for share in shares]
    assert stages["model"].arithmetic(rows[1]) == f"e^1.20 / Σ e^logits = {format_number(shares[1])}"
    assert stages["model"].arithmetic(rows[-1]).startswith("e^(−3.00) / ")
    assert stages["probability"].title == "after temperature\nand filters"


def test_a_negative_largest_score_is_bracketed(show_table, monkeypatch):
    monkeypatch.setattr(f"{__name__}.LOGITS", LOGITS - 5)
    rows, stages = show_table(PLAIN)
    assert stages["probability"].arithmetic(rows[1]).startswith("e^(−3.80 − (−2.69)) / Σ = ")


def test_the_sum_so_far_is_an_addition(show_table):
    rows, stages = show_table(PLAIN)
    formula = stages["cumulative"].arithmetic(rows[1])
    before, probability, end = map(float, re.match(r"(\S+) \+ (\S+) = (\S+):", formula).groups())
    assert before == pytest.approx(rows[0].probability, rel=0.01)
    assert before + probability == pytest.approx(end, abs=0.002)
    assert stages["cumulative"].cell(rows[-1]) == "1.00"


def test_top_k_counts_ranks(show_table):
    rows, stages = show_table(replace(PLAIN, top_k=3))
    assert [stages["top_k"].cell(row) for row in rows] == [KEPT] * 3 + [CUT] * 3
    assert stages["top_k"].arithmetic(rows[2]) == "rank 3 ≤ top-k 3: kept"
    assert stages["top_k"].arithmetic(rows[3]) == "rank 4 > top-k 3: cut"
    assert stages["probability"].cell(rows[3]) == "0"
    assert stages["probability"].arithmetic(rows[3]) == "cut by top-k, so never drawn"
    assert stages["cumulative"].cell(rows[3]) == ""


def test_what_one_limit_cut_the_next_does_not_ask(show_table):
    rows, stages = show_table(ALL)
    (by_top_k, *_) = [row for row in rows if row.cut_by == "top_k"]
    assert [stages[name].cell(by_top_k) for name in ("top_k", "top_p", "min_p")] == [CUT, "", ""]
    assert stages["min_p"].arithmetic(by_top_k) == "top-k has cut it already"


def test_top_p_asks_what_likelier_tokens_hold(show_table):
    rows, stages = show_table(replace(PLAIN, top_p=0.7))
    shares = np.sort(np.exp(LOGITS))[::-1] / np.exp(LOGITS).sum()
    assert [stages["top_p"].cell(row) for row in rows] == [
        KEPT if s < 0.7 else CUT for s in np.cumsum([0, *shares[:-1]])
    ]
    assert stages["top_p"].arithmetic(rows[1]) == f"likelier ones hold {shares[0]:.3f} < top-p 0.7: kept"
    assert re.fullmatch(r"likelier ones hold 0\.\d+ ≥ top-p 0.7: cut", stages["top_p"].arithmetic(rows[-1]))


def test_min_p_asks_how_much_less_likely_than_the_likeliest(show_table):
    rows, stages = show_table(replace(PLAIN, min_p=0.3))
    assert stages["min_p"].arithmetic(rows[1]) == "e^(1.20 − 2.31) = 0.330 times the likeliest ≥ min-p 0.3: kept"
    assert stages["min_p"].arithmetic(rows[2]) == "e^(0.40 − 2.31) = 0.148 times the likeliest < min-p 0.3: cut"


@pytest.mark.parametrize("settings", [replace(PLAIN, top_p=0.0), replace(PLAIN, min_p=1.0)], ids=["top-p", "min-p"])
def test_the_likeliest_is_kept_whatever_the_limit(show_table, settings):
    rows, stages = show_table(settings)
    column = stages.get("top_p") or stages["min_p"]
    assert (column.cell(rows[0]), column.arithmetic(rows[0])) == (KEPT, "rank 1: always kept")


def test_temperature_0_takes_the_largest(show_table):
    rows, stages = show_table(replace(PLAIN, temperature=0.0))
    assert [stages["argmax"].cell(row) for row in rows] == [KEPT] + [CUT] * 5
    assert stages["probability"].arithmetic(rows[0]) == "the largest, so its probability is 1"
    assert stages["probability"].arithmetic(rows[1]) == "cut, so never drawn"
