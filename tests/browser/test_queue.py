"""Generation requested while the previous event stream is closing."""

import pytest
from playwright.sync_api import expect

# Delivers the end of an event stream shortly after the next request was accepted.
DELAY_STREAM_CLOSE = """(() => {
  const send = window.fetch;
  let readClose = () => {};
  window.fetch = async (where, options) => {
    const read = readClose, answer = await send(where, options), address = where.url ?? String(where);
    if (address.includes("/queue/join")) setTimeout(read, 50);
    if (!address.includes("/queue/data")) return answer;
    const late = new TransformStream({ async transform(chunk, controller) {
      const close = new TextDecoder("latin1").decode(chunk).indexOf('data: {"msg":"close_stream"');
      if (close < 0) return controller.enqueue(chunk);
      controller.enqueue(chunk.subarray(0, close));
      window.isClosing = true;
      await new Promise((resolve) => { readClose = resolve; });
      window.isClosing = false;
      controller.enqueue(chunk.subarray(close));
    } });
    return new Response(answer.body.pipeThrough(late), answer);
  };
})()"""


@pytest.mark.exhaustive
def test_request_during_stream_close_is_answered(open_new_page):
    person = open_new_page()
    person.page.add_init_script(DELAY_STREAM_CLOSE)
    person.open(max_new_tokens=1, temperature=1)
    tokens, generate = person.chips.count(), person.page.locator("#generate")
    for more in (1, 2, 3):
        generate.click()
        expect(person.chips).to_have_count(tokens + more)
        person.wait_until("window.isClosing")
