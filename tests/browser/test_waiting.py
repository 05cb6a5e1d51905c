"""Queue position on the page of a user who waits for others."""

from playwright.sync_api import expect

from .test_old_pictures import hold_answers

RESPONSES = ("3", "1", "0", "null")


def test_who_waits_is_told_of_those_before(person):
    person.at_rest()
    responses, client_ids = iter(RESPONSES), []

    def answer(route):
        if '"people_before"' not in (route.request.post_data or ""):
            return route.fallback()
        client_ids.append(route.request.headers["x-visitor"])
        return route.fulfill(body=next(responses), content_type="application/json")

    queue_text = person.page.locator("#place")
    expect(queue_text).to_have_text("")
    with hold_answers(person, "pick"):
        person.page.route("**/component_server/**", answer)
        person.chips.nth(3).click()
        for queue_status in ("3 people before you.", "1 person before you.", "you are next."):
            expect(queue_text).to_have_text(f"Many people use this server: {queue_status}")
        expect(queue_text).to_have_text("")
        person.page.unroute("**/component_server/**", answer)
    tokens = person.chips.count()
    with person.page.expect_request("**/queue/join*") as joined:
        person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.chips).to_have_count(tokens + 1)
    assert {*client_ids, joined.value.headers["x-visitor"]} == {client_ids[0]} and len(client_ids) == len(RESPONSES)


def test_python_is_asked_about_a_tab_before_gradio_opens_it(person):
    person.at_rest()
    requests = person.page.evaluate("""() => {
      const sent = [], way = window.fetch;
      window.fetch = (where, options) => { sent.push(String(options?.body)); return way(where, options); };
      document.querySelector("#views [data-tab-id=residual]").click();
      window.fetch = way;
      return sent;
    }""")
    assert len(requests) == 1 and '"data":["view",' in requests[0] and '"view":"residual"' in requests[0]
    expect(person.page.locator("#residual-norms .plot")).to_be_visible()
