"""Saving and loading of diagnosis reports."""

import pytest

from explorer import diagnose
from explorer.diagnosis.load_module import load_module
from explorer.tracing.diagnosis_report import FILE, load_diagnosis_report


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"differences": 3}', "{"])
def test_damaged_report_loads_as_none(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    assert load_diagnosis_report(tmp_path) is None
    assert load_diagnosis_report(tmp_path / "nowhere") is None


def test_saved_report_loads_unchanged(tmp_path, file):
    report = diagnose(load_module(f"{file}:Mine"))
    report.save(tmp_path)
    again = load_diagnosis_report(tmp_path)
    assert again.differences == report.differences and again.rows == report.rows and again.first == report.first
