"""Fixtures for the map of a run."""

import pytest

from explorer.analysis.direct_logit_attribution import forward_pass_overview
from explorer.analysis.next_token import ranking_without_interventions
from explorer.views.overview import draw_model_map
from explorer.views.overview.map_layout import LandscapeLayout
from explorer.views.overview.map_parts import MapPart, ModelMap

from .map_selection import SELECTION


@pytest.fixture
def token_id(trace) -> int:
    return int(ranking_without_interventions(trace, SELECTION.query)[SELECTION.target - 1])


@pytest.fixture
def pass_overview(trace, token_id):
    return forward_pass_overview(trace, SELECTION.query, token_id)


@pytest.fixture
def diagram(trace) -> ModelMap:
    return draw_model_map(trace, SELECTION)


@pytest.fixture
def parts(diagram) -> list[MapPart]:
    return list(diagram.parts)


@pytest.fixture
def plan(trace) -> LandscapeLayout:
    return LandscapeLayout(trace.config, 5)


@pytest.fixture
def is_post_norm(trace) -> bool:
    return trace.config.norm_placement == "post"
