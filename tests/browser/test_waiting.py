"""Somebody who waits for others is told how many they are."""

from playwright.sync_api import expect

from .test_old_pictures import held

BEFORE = ("3", "1", "0", "null")


def test_who_waits_is_told_of_those_before(person):
    person.at_rest()
    told, asked = iter(BEFORE), []

    def answer(route):
        if '"people_before"' not in (route.request.post_data or ""):
            return route.fallback()
        asked.append(route.request.headers["x-visitor"])
        return route.fulfill(body=next(told), content_type="application/json")

    place = person.page.locator("#place")
    expect(place).to_have_text("")
    with held(person, "pick"):
        person.page.route("**/component_server/**", answer)
        person.chips.nth(3).click()
        for words in ("3 people before you.", "1 person before you.", "you are next."):
            expect(place).to_have_text(f"Many people use this server: {words}")
        expect(place).to_have_text("")
        person.page.unroute("**/component_server/**", answer)
    tokens = person.chips.count()
    with person.page.expect_request("**/queue/join*") as joined:
        person.page.get_by_role("button", name="Step", exact=True).click()
    expect(person.chips).to_have_count(tokens + 1)
    assert {*asked, joined.value.headers["x-visitor"]} == {asked[0]} and len(asked) == len(BEFORE)


def test_python_is_asked_about_a_tab_before_gradio_opens_it(person):
    person.at_rest()
    asked = person.page.evaluate("""() => {
      const sent = [], way = window.fetch;
      window.fetch = (where, options) => { sent.push(String(options?.body)); return way(where, options); };
      document.querySelector("#views [data-tab-id=residual]").click();
      window.fetch = way;
      return sent;
    }""")
    assert len(asked) == 1 and '"data":["view",' in asked[0] and '"view":"residual"' in asked[0]
    expect(person.page.locator("#residual-norms .plot")).to_be_visible()
