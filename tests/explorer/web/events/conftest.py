"""Fixture that sends commands of the page's script."""

import pytest


@pytest.fixture
def move(page, merged):
    def move(state: dict, **command) -> dict:
        return merged(state, [page.writing.on_move(state | {"move": command})])

    return move
