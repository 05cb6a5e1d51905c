"""Memory of a page after long use."""

import pytest


def count_nodes(page) -> int:
    """Return the number of DOM nodes in memory, including detached ones."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    session.send("Performance.enable")
    for _more in range(3):  # freeing objects may release others
        session.send("HeapProfiler.collectGarbage")
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return int(metrics["Nodes"])


@pytest.mark.exhaustive
def test_earlier_figures_are_freed(open_new_page):
    person = open_new_page().open()

    def select_tokens(times: int):
        for i in range(times):
            person.chips.nth(i % 4).click()
            person.wait_until_idle()

    select_tokens(4)
    before = count_nodes(person.page)
    select_tokens(8)
    assert count_nodes(person.page) - before < 8  # less than one for each click
