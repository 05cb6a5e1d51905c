from dataclasses import replace

import pytest

from model.checkpoint import list_checkpoints
from model.training.report import report, series_report
from model.training.trainer import train


@pytest.fixture
def validation(options):
    return options.validation


def test_report_contains_loss_heads_and_samples(options, validation):
    train(replace(options, steps=2))
    text = report("trained", validation)
    assert "nats a token" in text and "bits a byte" in text
    assert text.count("| layer 0 head") == 4  # both heads, as previous-token and as induction head
    assert text.count("> **Once upon a time**") == 1


@pytest.mark.exhaustive
def test_series_report_has_row_per_snapshot(options, validation):
    train(replace(options, snapshots=3))
    table = series_report([name for name in list_checkpoints() if "/" in name], validation)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == ["0", "1", "40"]
    assert float(rows[-1][1]) < float(rows[0][1])
