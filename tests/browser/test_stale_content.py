"""After any action the page shows the same as a page opened at its URL: no stale content."""

import os
import random
import time

import pytest

from explorer.state.generation_settings import GenerationSettings
from explorer.views import VIEWS

from .page_walk import Walk, diff_lines, prepare_page, read_settled_texts, wait_until_quiet

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
MAX_SECONDS = float(os.environ.get("WALK_SECONDS", 120))  # for each walk
STEPS_PER_COMPARISON = 3  # stale content of a step is still visible after the next ones


@pytest.fixture
def make_walk(open_new_page, state_builder):
    def make_walk(view: str, start: str, chance: random.Random) -> Walk:
        people = [open_new_page().open(view, max_new_tokens=4, **STARTS[start]) for _ in range(3)]
        return Walk(*people, parse_query, chance)

    def parse_query(query: dict[str, str]) -> dict:
        return (
            state_builder.state_from_query({"checkpoint": "tiny"} | query).as_dict()
            | GenerationSettings.parse(query).as_dict()
        )

    return make_walk


def test_page_after_actions_equals_page_opened_at_its_url(open_new_page):
    """Prompt, intervention, setting, selection, term and continuation, one after the other."""
    person, fresh = open_new_page().open(why="open", max_new_tokens=3), open_new_page()
    prepare_page(person.page)
    person.page.get_by_text("Examples", exact=True).click()
    person.page.get_by_role("button", name="copy a name", exact=True).click()
    wait_until_quiet(person.page)
    person.unfold_changes()
    person.page.locator("#attention-what-ifs input[type=range]").first.fill("0.5")
    person.set("temperature", 0.3)
    person.grid.locator("[data-layer='0'][data-head='0']").click()
    person.page.locator("#generate").click()
    wait_until_quiet(person.page)
    person.chips.nth(3).click()
    wait_until_quiet(person.page)
    person.page.locator("#changes button").first.click()
    wait_until_quiet(person.page)
    person.page.evaluate("window.modules.history.writeUrl()")
    fresh.page.goto(person.page.url)
    prepare_page(fresh.page)
    assert diff_lines(read_settled_texts(person.page), read_settled_texts(fresh.page)) == ([], [])


@pytest.mark.by_hand
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("view", [view.name for view in VIEWS])
def test_page_after_any_control_equals_page_opened_at_url(make_walk, view, start):
    """Use every visible control, in random order."""
    chance = random.Random(f"{view} {start} {os.environ.get('WALK_SEED', 0)}")
    walking, used, differences, end = make_walk(view, start, chance), set(), [], time.monotonic() + MAX_SECONDS
    while time.monotonic() < end:
        page = walking.here.page
        if walking.here.state["view"] != view:
            page.evaluate("view => document.querySelector(`[data-view=${view}]`).click()", view)
            walking.steps.append(f"tab {view}")
            wait_until_quiet(page)
        left = [control for control in walking.controls() if control not in used]
        used = used if left else set()
        for control in chance.sample(left, min(STEPS_PER_COMPARISON, len(left))):
            used.add(control)
            walking.use(control)
            wait_until_quiet(page)
        if different := walking.compare():
            differences.append(different)
            print(different, flush=True)
    print(
        f"{view}, {start}: {len(used)} controls, {len(walking.pairs)} pairs, {walking.compared} comparisons", flush=True
    )
    assert differences == [], "\n".join(map(str, differences))
