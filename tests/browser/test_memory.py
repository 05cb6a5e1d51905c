"""Memory of a page that is used for long."""

import pytest


def count_nodes(page) -> int:
    """Return the number of DOM nodes in memory, detached ones included."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    session.send("Performance.enable")
    for _more in range(3):  # what one leaves to be freed holds others
        session.send("HeapProfiler.collectGarbage")
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return int(metrics["Nodes"])


@pytest.mark.exhaustive
def test_nothing_is_kept_of_what_a_page_showed_before(newcomer):
    person = newcomer().open()

    def select_tokens(times: int):
        for i in range(times):
            person.chips.nth(i % 4).click()
            person.at_rest()

    select_tokens(4)
    before = count_nodes(person.page)
    select_tokens(8)
    assert count_nodes(person.page) - before < 8  # one a click
