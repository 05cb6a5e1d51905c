import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from model.checkpoint import list_checkpoints
from model.training.report import curves_svg, report, series_report
from model.training.trainer import train

SVG = "{http://www.w3.org/2000/svg}"


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
    table, svg = series_report([name for name in list_checkpoints() if "/" in name], validation)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == ["0", "1", "40"]
    assert float(rows[-1][1]) < float(rows[0][1])
    assert len(ElementTree.fromstring(svg).findall(f"{SVG}polyline")) == 2


def test_curve_passes_through_its_points():
    svg = ElementTree.fromstring(curves_svg([0, 1, 10, 100], {"a < b": [0, 0.25, 0.5, 1]}, "score"))
    points = [tuple(map(float, p.split(","))) for p in svg.find(f"{SVG}polyline").attrib["points"].split()]
    xs, ys = zip(*points, strict=True)
    assert list(xs) == sorted(xs)
    heights = [(ys[0] - y) / (ys[0] - ys[-1]) for y in ys]
    assert heights == pytest.approx([0, 0.25, 0.5, 1], abs=0.01)
    assert xs[2] - xs[1] == pytest.approx(xs[3] - xs[2], abs=0.2)  # equal distances per factor of ten
    assert "a < b" in [label.text for label in svg.findall(f"{SVG}text")]
