"""Message to a user who waits for other requests, and immediate requests of the page."""

from threading import Event

from playwright.sync_api import expect

from explorer.web.browser_api import page_contents
from explorer.web.browser_routes import LIGHT_SLOTS

# Sends requests as other pages would, for states without a cached answer.
ASK = """(seeds) => {
  for (const seed of seeds) {
    const body = JSON.stringify({ about: "tune", state: { ...window.modules.page.state, seed } });
    fetch("explorer/answer", { method: "POST", headers: { "Content-Type": "application/json" }, body });
  }
}"""


def test_waiting_user_sees_number_of_waiting_requests(open_page, monkeypatch):
    person, seeds = open_page(seed=4711), list(range(1_000_000, 1_000_001 + LIGHT_SLOTS))
    message = person.wait_until_idle().page.locator("#place")
    free, begun, compute = Event(), [], page_contents.next_token_distribution_in_run

    def compute_later(*args):
        begun.append(args)
        free.wait(60)
        return compute(*args)

    monkeypatch.setattr(page_contents, "next_token_distribution_in_run", compute_later)
    try:
        person.page.evaluate(ASK, seeds[:-1])
        while len(begun) < LIGHT_SLOTS:
            person.page.wait_for_timeout(20)
        person.chips.nth(3).click()
        expect(message).to_have_text("Many people use this server: 1 request waits.")
        person.page.evaluate(ASK, seeds[-1:])
        expect(message).to_have_text("Many people use this server: 2 requests wait.")
    finally:
        free.set()
    expect(message).to_have_text("")
    expect(person.page.locator("#next-token-words")).to_contain_text("(position 3)")


def test_tab_click_sends_request_immediately(open_page):
    person = open_page(unfolded="residual-norms")
    person.wait_until_idle()
    requests = person.page.evaluate("""() => {
      const sent = [], way = window.fetch;
      window.fetch = (where, options) => { sent.push([where, options?.body]); return way(where, options); };
      document.querySelector("#views [data-view=residual]").click();
      window.fetch = way;
      return sent.map(([where, body]) => [where, JSON.parse(body).about, JSON.parse(body).state.view]);
    }""")
    assert requests == [["explorer/answer", "view", "residual"]]
    expect(person.page.locator("#residual-norms .plot")).to_be_visible()
