// @ts-check
// Gradio's answers come by a stream, which the server closes once none is due, and which the page opens again with what it
// asks next if it knows of that. Gradio 6.31 loses the answer to what is asked while it does not: asked after the server
// has closed the stream, and before the page has read so. Here the page learns that its question was taken only when the
// stream has told of it, which is then open, or has been closed, so that the page opens another.

const EVENT = /"event_id":"(\w+)"/g, LONGEST = 64; // characters of the longest such
const decoder = new TextDecoder("latin1"); // an id is ASCII, and so is where a character of several bytes may be cut

class Stream {
  isClosed = false;
  /** @type {Set<string>} */
  #events = new Set();
  #end = ""; // of what came, where an id may have begun
  #heard = new EventTarget();

  /** @param {Uint8Array} chunk */
  read(chunk) {
    const text = this.#end + decoder.decode(chunk);
    for (const [, event] of text.matchAll(EVENT)) this.#events.add(event);
    this.#end = text.slice(-LONGEST);
    this.#heard.dispatchEvent(new Event("heard"));
  }

  close() {
    this.isClosed = true;
    this.#heard.dispatchEvent(new Event("heard"));
  }

  /** @param {string} event */
  async hearsOf(event) {
    while (!this.isClosed && !this.#events.has(event))
      await new Promise((resolve) => this.#heard.addEventListener("heard", resolve, { once: true }));
  }
}

let latest = new Stream();
latest.close();

/**
 * The answer to the request for a stream, which is read here too.
 * @param {AbortSignal} signal by which the page closes it
 * @param {Promise<Response>} answer
 */
export async function watchStream(signal, answer) {
  const stream = new Stream();
  latest = stream;
  signal.addEventListener("abort", () => stream.close());
  try {
    const response = await answer;
    if (!response.ok) stream.close();
    if (!response.ok || !response.body) return response;
    const reading = new TransformStream({
      transform(chunk, controller) { stream.read(chunk); controller.enqueue(chunk); },
      flush() { stream.close(); },
    });
    return new Response(response.body.pipeThrough(reading), response);
  } catch (error) {
    stream.close();
    throw error;
  }
}

/**
 * The answer to a question that was put in the queue, once the page can tell by which stream it will be answered.
 * @param {Promise<Response>} answer
 */
export async function inTime(answer) {
  const response = await answer;
  if (response.ok && !latest.isClosed) await latest.hearsOf((await response.clone().json()).event_id);
  return response;
}
