"""Whatever was done on a page, it says what a page says that is opened at its address: no sentence, bar or badge of the
state before stays."""

import os
import random
import time

import pytest

from explorer.state.selection import TABS
from explorer.state.settings import GenerationSettings

from .stale import Walk, apart, prepare, read_at_rest, rest

STARTS = {
    "one run": {},
    "two runs": {
        "text": "The cat sat on the mat. The cat",
        "b.text": "The dog sat on the mat. The dog",
        "shown": "difference",
    },
    "changed": {"edits": "blocks.0.attn.z.1*zero", "why": "open", "stand_ins": "open"},
    "a step of a training": {"checkpoint": "fables/step-000004", "text": "The cat sat. The cat"},
}
SECONDS = float(os.environ.get("WALK_SECONDS", 120))  # of each walk
BEFORE_COMPARED = 3  # what stays of one of them is seen after the last, too


@pytest.fixture
def walk(newcomer, opening):
    def walk(view: str, start: str, chance: random.Random) -> Walk:
        people = [newcomer().open(view, max_new_tokens=4, **STARTS[start]) for _ in range(3)]
        return Walk(*people, restored, chance)

    def restored(query: dict[str, str]) -> dict:
        return opening.restored({"checkpoint": "tiny"} | query).as_dict() | GenerationSettings.parse(query).as_dict()

    return walk


def test_after_a_visit_the_page_says_what_it_does_when_opened_so(newcomer):
    """Text, model's change, setting, place, what is told of a token, what was written: each after others."""
    person, fresh = newcomer().open(why="open", max_new_tokens=3), newcomer()
    prepare(person.page)
    person.page.get_by_role("button", name="copy a name", exact=True).click()
    rest(person.page)
    person.page.locator("#attention-what-ifs input[type=range]").first.fill("0.5")
    person.set("temperature", 0.3)
    person.grid.locator("[data-layer='0'][data-head='0']").click()
    person.page.locator("#generate").click()
    rest(person.page)
    person.chips.nth(3).click()
    rest(person.page)
    person.page.locator("#changes button").first.click()
    rest(person.page)
    person.page.evaluate("window.modules.history.writeAddress()")
    fresh.page.goto(person.page.url)
    prepare(fresh.page)
    assert apart(read_at_rest(person.page), read_at_rest(fresh.page)) == ([], [])


@pytest.mark.by_hand
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("view", TABS)
def test_after_any_control_the_page_says_what_it_does_when_opened_so(walk, view, start):
    """Every control in sight, in turn, in an order that chance says."""
    chance = random.Random(f"{view} {start} {os.environ.get('WALK_SEED', 0)}")
    walking, used, found, end = walk(view, start, chance), set(), [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        page = walking.here.page
        if walking.here.state["view"] != view:
            page.evaluate("view => document.querySelector(`[data-tab-id=${view}]`).click()", view)
            walking.steps.append(f"tab {view}")
            rest(page)
        left = [control for control in walking.controls() if control not in used]
        used = used if left else set()
        for control in chance.sample(left, min(BEFORE_COMPARED, len(left))):
            used.add(control)
            walking.use(control)
            rest(page)
        if different := walking.compare():
            found.append(different)
            print(different, flush=True)
    print(
        f"{view}, {start}: {len(used)} controls, {len(walking.pairs)} pairs, {walking.compared} comparisons", flush=True
    )
    assert found == [], "\n".join(map(str, found))
