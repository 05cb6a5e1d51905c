// Stand-ins for what browsers have and node has not, as far as the tests look at it.

/** An element of a page: its data, its classes, its events. */
export class StandIn extends EventTarget {
  constructor(id = "") {
    super();
    const classes = new Set();
    Object.assign(this, { id, dataset: {}, isConnected: true, textContent: "" });
    this.classList = { add: (name) => classes.add(name), remove: (name) => classes.delete(name), contains: (name) => classes.has(name) };
  }

  append() {}

  prepend() {}

  closest() { return this; }

  /** Presses a key; says whether the browser is kept from doing what it does by itself. */
  press(key, modifiers = {}) {
    const event = Object.assign(new Event("keydown", { cancelable: true }), { key, ...modifiers });
    return !this.dispatchEvent(event);
  }
}

/** Has node have a page with blocks, Gradio's elements around the widgets. */
export function standInPage(...blocks) {
  const body = new StandIn("body");
  globalThis.window = globalThis;
  globalThis.gradio_config = { app_id: 1, components: [{ id: 7, props: { elem_id: "state" } }] };
  globalThis.document = {
    body,
    createElement: () => new StandIn(),
    getElementById: (id) => blocks.find((block) => block.id === id) ?? null,
    querySelector: () => null,
    querySelectorAll: (selector) => blocks.filter(({ id }) => selector.split(/,\s*/).includes(`#${id}`)),
  };
}

/** What was asked of Python, one after another; each is answered by its `answer`. */
export function standInPython() {
  const asked = [];
  globalThis.fetch = (_, { body, signal }) =>
    new Promise((resolve, reject) => {
      const [about, state, part] = JSON.parse(body).data;
      signal.addEventListener("abort", () => reject(new DOMException("no longer wanted", "AbortError")));
      const answer = (content, ok = true) => resolve({ ok, json: async () => content });
      asked.push({ about, state, part, signal, answer, fail: () => reject(new TypeError("nobody is there")) });
    });
  return asked;
}

/** Resolved once all that waits for nothing more has been done. */
export const settled = () => new Promise((resolve) => { setImmediate(resolve); });
