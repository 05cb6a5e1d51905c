"""The map of a run, and what it is drawn from."""

import pytest

from explorer.analysis.next_token import ranking
from explorer.analysis.overview import overview
from explorer.views.overview import map_of
from explorer.views.overview.diagram import Diagram, Part
from explorer.views.overview.wide import Wide

from .shown import SELECTION


@pytest.fixture
def token_id(trace) -> int:
    return int(ranking(trace, SELECTION.query)[SELECTION.target - 1])


@pytest.fixture
def found(trace, token_id):
    return overview(trace, SELECTION.query, token_id)


@pytest.fixture
def diagram(trace) -> Diagram:
    return map_of(trace, SELECTION)


@pytest.fixture
def parts(diagram) -> list[Part]:
    return list(diagram.parts)


@pytest.fixture
def plan(trace) -> Wide:
    return Wide(trace.config, 5)


@pytest.fixture
def post(trace) -> bool:
    return trace.config.norm_placement == "post"
