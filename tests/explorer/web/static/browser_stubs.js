// Stubs for browser objects that Node lacks, as far as the tests use them.

const later = globalThis.setTimeout; // real timer, even if a test mocks timers

/** An element of a page: its data, its classes, its events. */
export class StandIn extends EventTarget {
  constructor(id = "") {
    super();
    const classes = new Set();
    Object.assign(this, { id, dataset: {}, textContent: "" });
    this.children = [];
    this.classList = { add: (name) => classes.add(name), remove: (name) => classes.delete(name), contains: (name) => classes.has(name), toggle: (name, on) => (on ? classes.add(name) : classes.delete(name)) };
  }

  append(...contents) { this.children.push(...contents); }

  remove() {}

  prepend() {}

  closest() { return this; }

  /** Presses a key; returns whether the browser's default action is prevented. */
  press(key, modifiers = {}) {
    const event = Object.assign(new Event("keydown", { cancelable: true }), { key, ...modifiers });
    return !this.dispatchEvent(event);
  }
}

/** Gives Node a page with blocks, Gradio's elements around the widgets. */
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

/** What was asked of Python, one after another. Each is answered by its `line`s and `end`, by `answer` with one line and no
 * more, by `refuse` with a sentence, or by nobody: `fail`. */
export function standInPython() {
  const asked = [];
  globalThis.fetch = (address, { body, signal }) =>
    new Promise((resolve, reject) => {
      let lines;
      const response = new Response(new ReadableStream({ start: (controller) => { lines = controller; } }));
      signal.addEventListener("abort", () => {
        reject(signal.reason);
        try { lines.error(signal.reason); } catch { /* all had come */ }
      });
      const line = (content) => { lines.enqueue(new TextEncoder().encode(`${JSON.stringify(content)}\n`)); resolve(response); };
      const end = () => { try { lines.close(); } catch { /* nobody reads on */ } };
      const answer = (content = { contents: {} }) => { try { line(content); } catch { /* nobody reads on */ } end(); };
      const refuse = (detail, status = 422) => resolve(Response.json({ detail }, { status }));
      asked.push({ name: String(address).replace("explorer/", ""), ...JSON.parse(body), signal, line, end, answer, refuse, fail: () => reject(new TypeError("nobody is there")) });
    });
  return asked;
}

/** Resolves once all pending work is done and all streamed lines have arrived. */
export const settled = () => new Promise((resolve) => { later(resolve, 20); });
