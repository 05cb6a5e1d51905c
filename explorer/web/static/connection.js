// The way to Python: what the page asks it, and what the page says and does while nobody answers. What Gradio sends by
// itself goes another way; where that breaks off, Gradio loads the page anew as soon as somebody answers again.
(() => {
  const EVERY = 2000, PATIENCE = 10_000; // milliseconds between two looks for the server; until one is taken at all
  const TYPED = "explorer:typed", INTERRUPTED = "explorer:interrupted"; // what outlives a reload
  const GONE = "The server does not answer: the page catches up by itself once it is back.";
  const BROKEN_OFF = "Writing was interrupted: press Generate to go on.";
  const reloaded = performance.getEntriesByType("navigation")[0]?.type === "reload";
  const banner = document.createElement("div");
  let lost = false, writing = false, inFlight = new AbortController(), catchUp = () => {};

  class Refused extends Error {} // Python's sentence in place of an answer
  class Lost extends Error {} // nobody's answer; the page catches up later

  // Python's answer. Throws Refused, Lost, or an AbortError where `signal` says that it is no longer wanted.
  async function call(name, given, signal = new AbortController().signal) {
    const impatience = setTimeout(look, PATIENCE), here = inFlight.signal;
    try {
      const response = await fetch("gradio_api/component_server/", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ data: given, fn_name: name, component_id: stateId(), session_hash: "page" }),
        signal: AbortSignal.any([signal, here]),
      });
      const answer = await response.json(); // a proxy's page says that Python is gone
      if (response.ok) return answer;
      throw new Refused(answer.detail);
    } catch (error) {
      if (error instanceof Refused || signal.aborted) throw error;
      lose();
      throw new Lost();
    } finally { clearTimeout(impatience); }
  }
  const stateId = () => window.gradio_config.components.find(({ props }) => props.elem_id === "state").id;

  // Whether the server is there; and if it is another than the page came from, the page comes anew, with its address.
  async function look() {
    const id = await appId();
    if (!id) lose();
    else if (lost && id !== window.gradio_config.app_id) location.reload();
    else if (lost) regain();
  }
  async function appId() {
    try { return (await (await unwatched("gradio_api/app_id", { cache: "no-store", signal: AbortSignal.timeout(5000) })).json()).app_id; }
    catch { return null; }
  }
  function lose() {
    if (lost) return;
    lost = true;
    inFlight.abort();
    inFlight = new AbortController();
    document.body.classList.add("disconnected");
    banner.textContent = GONE;
    const looking = setInterval(() => (lost ? look() : clearInterval(looking)), EVERY);
  }
  function regain() {
    lost = false;
    document.body.classList.remove("disconnected");
    banner.textContent = writing ? BROKEN_OFF : "";
    catchUp();
  }

  // A request of Gradio's own that fails is as good a reason to look as one of ours.
  const unwatched = window.fetch.bind(window);
  window.fetch = (...asked) => {
    const answer = unwatched(...asked);
    answer.catch((error) => { if (error.name !== "AbortError") look(); });
    return answer;
  };
  window.addEventListener("offline", look); // it may be on this very machine, and there
  window.addEventListener("online", look);

  banner.id = "connection";
  banner.setAttribute("role", "status");
  document.body.prepend(banner);
  if (reloaded && sessionStorage.getItem(INTERRUPTED)) banner.textContent = BROKEN_OFF;
  sessionStorage.removeItem(INTERRUPTED);
  window.addEventListener("pagehide", () => { if (writing) sessionStorage.setItem(INTERRUPTED, true); });
  document.addEventListener("input", ({ target }) => {
    if (target.closest("#prompt")) sessionStorage.setItem(TYPED, target.value);
  });

  window.Connection = {
    call,
    Refused,
    Lost,
    get lost() { return lost; },
    // What to do once the server is back.
    onReturn(listener) { catchUp = listener; },
    // Whether tokens are coming; where they stop by themselves, it is told.
    writes(now) {
      writing = now;
      if (!lost) banner.textContent = "";
    },
    // What is in the prompt's box has been run.
    ran() { sessionStorage.removeItem(TYPED); },
    // What the prompt's box begins with: what was typed before a reload, or else what has been run.
    prompt(ran) {
      const typed = reloaded && sessionStorage.getItem(TYPED);
      if (!reloaded) this.ran();
      return typed || ran;
    },
  };
})();
