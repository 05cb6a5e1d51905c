"""Table of all heads: its numbers, sorting, clicks and keys."""

import numpy as np
from playwright.sync_api import Locator, expect

from explorer.analysis.head_scores import HEAD_SCORES, head_scores
from explorer.state.selection import Selection
from explorer.views.attention import all_heads_table

from .person import Person
from .pixels import capture_visible_run

TEXTS = "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"


def format_cell(number: float, is_signed: bool) -> str:
    text = f"{number:{'+' if is_signed else ''}.3f}".replace("-", "−")
    return text.lstrip("+−") if float(text.replace("−", "-")) == 0 else text


def read_rows(person: Person) -> list[list[str]]:
    return person.page.locator("#attention-table tbody tr").evaluate_all(TEXTS)


def find_heading(person: Person, name: str) -> Locator:
    return person.page.locator("#attention-table thead button").get_by_text(name, exact=True)


def test_head_table_is_sorted_selected_and_explained(open_page):
    person = open_page(checkpoint="gpt-twin", text="the owl and the moon and", layer=1, head=2, query=4, unfolded="all")
    table = person.page.locator("#attention-table")
    expect(person.wait_until_idle().page.locator(".stale:visible")).to_have_count(0)
    trace = capture_visible_run(person)
    columns = all_heads_table(trace, Selection(query=4).clamp_to_trace(trace)).columns
    heads = list(np.ndindex(columns[0].values.shape))
    expected = [
        [f"{layer}.{head}", *(format_cell(one.values[layer, head], one.signed) for one in columns)]
        for layer, head in heads
    ]
    assert read_rows(person) == expected
    table.scroll_into_view_if_needed()
    before = person.page.evaluate("scrollY")
    table.locator("tbody tr").first.hover()
    person.page.mouse.wheel(0, -100)
    person.wait_until("(before) => scrollY < before", before)  # the table is fully visible, so the page scrolls

    scores = head_scores(trace, "previous_token")
    column = list(HEAD_SCORES).index("previous_token")
    for direction, sign in (("descending", -1), ("ascending", 1)):
        find_heading(person, "previous token").click()
        expect(table.locator(f"[aria-sort={direction}]")).to_have_text("previous token")
        order = sorted(heads, key=lambda head: sign * scores[head])
        assert [row[0] for row in read_rows(person)] == [f"{layer}.{head}" for layer, head in order]
    expect(table.locator("[aria-selected=true] th")).to_have_text("1.2")

    layer, head = order[0]
    table.locator("tbody tr").first.locator("td").nth(column).click()
    person.expect_selected(layer=layer, head=head)
    expect(table.locator("[aria-selected=true] th")).to_have_text(f"{layer}.{head}")
    expect(person.page.locator(f'[data-of="{table.get_attribute("id")}"]')).to_contain_text(
        f"layer {layer} head {head}: how much it looks at the token before"
    )
    table.locator("tbody tr").nth(1).locator("td").last.click()
    expect(person.page.locator(f'[data-of="{table.get_attribute("id")}"]')).to_contain_text(
        "what layer {} head {} adds".format(*order[1])
    )

    pattern = person.page.locator("#attention-pattern .plot")
    expect(pattern).not_to_be_in_viewport()
    table.locator("tbody tr").nth(1).locator("th").click()  # the name of a head leads to its pattern
    expect(pattern).to_be_in_viewport(ratio=0.9)
    table.locator("tbody tr").nth(2).locator("th").click(modifiers=["Shift"])
    person.expect_selected(layer=order[1][0], head=order[1][1], heads="{}.{}".format(*order[2]), pattern="chosen_mean")
    expect(table.locator("tr.among")).to_have_count(1)
    table.locator("tbody tr").nth(1).locator("td").last.click()
    person.page.keyboard.press("ArrowDown")
    person.page.keyboard.press("ArrowDown")
    person.expect_selected(layer=order[3][0], head=order[3][1])
    expect(table.locator("tbody tr").nth(3).locator("td").last).to_be_focused()
    expect(table.locator("[tabindex='0']")).to_have_count(1)
    person.page.keyboard.press("+")
    person.expect_selected(heads="{}.{}~{}.{}".format(*order[2], *order[3]))
    assert table.locator(".scores").evaluate("(box) => box.scrollHeight <= box.clientHeight")  # only the page scrolls
