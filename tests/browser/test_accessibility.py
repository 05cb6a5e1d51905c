"""What people who see otherwise, or use no mouse, find."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from explorer.style import DARK, LIGHT
from explorer.views import VIEWS

DESKTOP, TELEPHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
DRAWN = """(colour) => [...document.querySelectorAll("#views .plot")].filter((plot) => plot.clientWidth)
  .every(({ dataset, clientWidth, _fullLayout: { font, width } = {} }) =>
    dataset.draws && font.color === colour && width === clientWidth)"""


@pytest.fixture
def still(newcomer):
    """Somebody whose page moves nothing, so that no colour is read on its way to another."""
    return newcomer(reduced_motion="reduce")


def test_axe_finds_nothing_wrong(still):
    person = still.open(view=VIEWS[0].name)
    for view in VIEWS:
        person.tab(view.title)
        for theme in (LIGHT, DARK):
            for size in (DESKTOP, TELEPHONE):
                person.page.set_viewport_size(size)
                person.page.wait_for_function(DRAWN, arg=theme.text)
                found = Axe().run(person.page).response["violations"]
                assert not [told(violation) for violation in found], (view.title, theme, size)
            person.page.get_by_role("button", name="Light / dark").click()


def told(violation: dict) -> str:
    """What axe says of the first element."""
    node = violation["nodes"][0]
    return f"{violation['id']}: {node['html'][:160]}: {node['failureSummary']}"
