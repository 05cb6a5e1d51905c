"""What a page that is used for long keeps."""

import pytest


def nodes(page) -> int:
    """All that are held, also those that no document has."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.enable")
    session.send("Performance.enable")
    for _more in range(3):  # what one leaves to be freed holds others
        session.send("HeapProfiler.collectGarbage")
    found = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return int(found["Nodes"])


@pytest.mark.exhaustive
def test_nothing_is_kept_of_what_a_page_showed_before(newcomer):
    person = newcomer().open()

    def look_at(times: int):
        for each in range(times):
            person.chips.nth(each % 4).click()
            person.at_rest()

    look_at(4)
    before = nodes(person.page)
    look_at(8)
    assert nodes(person.page) - before < 8  # one a click
