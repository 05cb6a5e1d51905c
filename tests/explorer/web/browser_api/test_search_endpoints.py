"""Entries of the page's search."""

import numpy as np
import pytest

from explorer.errors import UserError
from explorer.state.selection import Selection
from explorer.tracing.run_service import RunService
from explorer.views import VIEW_BY_NAME
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.endpoints import ALIASES, FIGURE_ALIASES, BrowserEndpoints
from explorer.web.shared_constants import element_id


@pytest.fixture(scope="module")
def search(library) -> BrowserEndpoints:
    return BrowserEndpoints(RunService(library))


@pytest.fixture
def state(search) -> dict:
    run = PageStateBuilder(search.runs).create_run("rope", "the fox asked the owl")
    return run.as_dict() | Selection(query=3).as_dict()


def test_index_describes_model(search, state, library):
    index, (lm, _tokenizer) = search.search_index(state), library.model("rope")
    assert (index["layers"], index["heads"], index["neurons"]) == (
        lm.config.num_layers,
        lm.config.num_heads,
        lm.config.d_ff,
    )
    assert set(index["checkpoints"]) == set(library.checkpoints)
    ((figure, field, _title, scores),) = index["views"]["attention"]["choices"]
    assert (figure, field) == ("attention-scores", "head_score") and ("induction", "induction") in scores


def test_index_has_only_applicable_figures(search, state):
    def positions(checkpoint: str) -> list[str]:
        run = PageStateBuilder(search.runs).create_run(checkpoint, "the fox asked the owl")
        views = search.search_index(state | run.as_dict())["views"]
        return [name for name, _title, _aliases in views["positions"]["figures"]]

    assert "positions-clocks" in positions("rope") and "positions-vectors" not in positions("rope")
    assert positions("none") == []


def test_aliases_match_views():
    views = {view.name for view in VIEW_BY_NAME.values() if view.group not in ("story",) and view.name in ALIASES}
    assert set(ALIASES) == views
    panels = {element_id(view.name, panel.name) for view in VIEW_BY_NAME.values() for panel in view.panels}
    assert set(FIGURE_ALIASES) <= panels


def test_tokens_are_found_by_text_and_id(search, state, library):
    _lm, tokenizer = library.model("rope")
    matches = search.find_tokens(state, "·the")
    assert all(" the" in token.casefold() and tokenizer.vocabulary[i] == token for i, token in matches)
    pairs = [text for text in tokenizer.vocabulary if text.isalpha() and f" {text}" in tokenizer.vocabulary]
    for text in (pairs[0], f" {pairs[0]}"):
        assert search.find_tokens(state, text.replace(" ", "·"))[0][1] == text
    assert search.find_tokens(state, "↵")[0][1] == "\n"
    assert search.find_tokens(state, "42")[0][0] == 42
    begins = [token.strip().casefold().startswith("t") for _i, token in search.find_tokens(state, "t")]
    assert begins[0] and begins == sorted(begins, reverse=True)


def test_token_rank_is_after_selected_position(search, state):
    logits = search.runs.trace(PageStateBuilder(search.runs).create_run("rope", "the fox asked the owl"))["logits"][3]
    for token in (0, 42, int(np.argmax(logits))):
        assert search.rank_of_token(state, token) == 1 + (logits > logits[token]).sum()
    with pytest.raises(UserError, match="no token 300"):
        search.rank_of_token(state, 300)
