// What the widgets share: the page's state, the theme, and how tokens are shown. Loaded once, in the page's head.
(() => {
  const STATE_EVENT = "explorer:state", THEME_EVENT = "explorer:theme";
  const { about: QUESTIONS, mark: MARK, formula: FORMULA, coach: COACH, nextToken: NEXT_TOKEN } = window.Protocol;
  const contents = {}, receivers = {}; // of widgets, by element id
  let state = {}, bus = null, wanted = -1, waiting = null, untold = false, silence = 0;
  let version = ""; // of the model's files that what is on show was computed with

  // Causal: a query looks at its own position and before.
  const tidy = (s) => (s.key > s.query ? { ...s, key: s.query } : s);

  function set(change, tell = true) {
    const before = state;
    state = tidy({ ...state, ...change });
    if (before.checkpoint && before.checkpoint !== state.checkpoint) past.own[before.checkpoint] = continuationsOf(before);
    if (bus) bus.write(state);
    untold = true;
    if (tell) tellState();
    past.follow(state);
  }
  function tellState() {
    if (!untold) return;
    untold = false;
    document.dispatchEvent(new CustomEvent(STATE_EVENT));
  }

  // One question at a time, about the state as it then is, so that no answer is overtaken by an older one. The next is
  // on its way while an answer is drawn; what is left of an answer is not waited for once something newer is asked.
  async function ask(question) {
    wanted = Math.max(wanted, QUESTIONS.indexOf(question));
    outdate(question);
    if (waiting?.part) waiting.abort();
    if (waiting || !bus || Connection.lost) return;
    const send = ({ now, part }) => {
      const unwanted = new AbortController();
      waiting = { part, abort: () => unwanted.abort() };
      return Connection.call("answer", [QUESTIONS[now], { ...state, version }, part], unwanted.signal);
    };
    let asked = following(null, false), coming = asked && send(asked);
    const busy = (is) => document.getElementById("views")?.setAttribute("aria-busy", is);
    busy(true);
    while (asked) {
      const answer = await answered(coming), { number } = asked;
      version = answer.version ?? version;
      wanted = Math.max(wanted, QUESTIONS.indexOf(answer.ask)); // the model was written anew: all of it has changed
      asked = following(asked, answer.more);
      coming = asked && send(asked);
      for (const [id, content] of Object.entries(answer.contents)) give(id, content, number);
      tellState();
    }
    waiting = null;
    busy(false);
  }

  // What came, or in its place the sentence that says why nothing did. Nobody's answer is asked for again (`onReturn`).
  async function answered(coming) {
    try { return await coming; } catch (error) {
      if (error.name === "AbortError") return { contents: {}, more: true };
      return { contents: error instanceof Connection.Refused ? { problem: error.message } : {}, more: false };
    }
  }
  Connection.onReturn(() => ask("show"));

  // The newest question, with what is left of the one before; or else the rest of that.
  function following(asked, more) {
    if (Connection.lost) return null;
    if (wanted < 0) return more ? { ...asked, part: asked.part + 1 } : null;
    const now = more ? Math.max(wanted, asked.now) : wanted;
    wanted = -1;
    return { now, part: 0, number: questions };
  }

  // Pictures that a question is about are marked as old until what answers it, or a later one, is drawn; but not where
  // that comes at once, as to dim all of them takes a fifth of a click's time.
  const AT_ONCE = 300; // milliseconds
  let questions = 0;
  function outdate(question) {
    const { view } = state, formula = `#${view}-${FORMULA}`, pictures = `.panels > [id^="${view}-"]`;
    const all = `${pictures}, ${formula}, #${COACH}`;
    const old = { tune: "", token: all, pick: `${pictures}:not(.once), ${formula}`, show: all }[question];
    const number = ++questions;
    for (const { dataset } of document.querySelectorAll([`#${NEXT_TOKEN}`, old].filter(Boolean).join())) {
      dataset.asked = number;
      dataset.oldSince ??= number;
    }
    setTimeout(() => {
      for (const block of document.querySelectorAll("[data-old-since]"))
        if (block.dataset.oldSince <= number) block.classList.add("stale");
    }, AT_ONCE);
  }

  // Tabs build their widgets when they are first opened: what came before that is kept for them. One that fails leaves
  // the others as they should be.
  async function give(id, content, number) {
    contents[id] = content;
    try { await receivers[id]?.(content); } catch (error) { return broke(error); }
    const block = document.getElementById(id);
    if (!(block?.dataset.asked <= number)) return;
    delete block.dataset.oldSince;
    block.classList.remove("stale");
  }
  function broke(error) {
    console.error(error);
    give("problem", "A part of the page could not be drawn. Reload the page to try again: its address holds all you chose.");
  }

  // While tokens stream in the prediction alone follows; once they stop coming, for whatever reason, all pictures do.
  let written = null; // what Python has written so far, of which the first tokens are shown
  const pace = ExplorerPace((count, isLast) => {
    const { change, steps } = written, generated = change.generated.slice(0, change.generated.length - steps.length + count);
    clearTimeout(silence);
    const query = steps[count - 1];
    set({ ...change, generated, query, key: Math.max(0, query - 1) }, false); // what is said of a new token is as it is drawn
    Connection.writes(!isLast);
    ask(isLast ? "show" : "token");
    if (!isLast && count === steps.length) silence = setTimeout(() => ask("show"), 300);
  }, () => waiting || Connection.lost);

  // What is being written ends with what is seen: all that is on its way comes too late.
  function stop() {
    if (!state.checkpoint) return;
    const playing = pace.drop();
    clearTimeout(silence);
    Connection.writes(false);
    set({ turn: state.turn + 2 });
    if (playing) ask("show");
  }

  const moves = []; // of which the first is being made
  let moved = Promise.resolve(), tellMoved; // whether all are made

  // The browser's Back and Forward.
  const past = ExplorerHistory((there, isSameRun) => {
    if (isSameRun) set({ view: there.view });
    else {
      pace.drop();
      bus.halt();
      set({ ...there, turn: state.turn + 2 });
      bus.follow();
    }
    bus.openTab();
    ask("show");
  });
  const continuationsOf = ({ prompt, dropped, generated, branches, began }) => ({ prompt, dropped, generated, branches, began });

  // Runs `listener` now and at every event, until the widget's element has left the page.
  function listen(event, element, listener) {
    const wrapped = () => {
      if (element.isConnected) listener();
      else document.removeEventListener(event, wrapped);
    };
    document.addEventListener(event, wrapped);
  }

  // Figures are drawn one a frame, from the top of the page down: the first is seen before the last is drawn. A hidden
  // page has no frames.
  const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve); setTimeout(resolve, 100); });
  const queue = [];
  let drawing = false;
  function inTurn(element, draw) {
    return new Promise((resolve) => {
      queue.push({ element, draw, resolve });
      if (!drawing) drawQueue();
    });
  }
  async function drawQueue() {
    drawing = true;
    await null; // what came with the first one is then here, too
    while (queue.length) {
      const precedes = (a, b) => (a.element.compareDocumentPosition(b.element) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
      const { draw, resolve } = queue.sort(precedes).shift();
      try { await draw(); } catch (error) { broke(error); }
      resolve();
      await frame();
    }
    drawing = false;
  }

  const isDark = () => document.body.classList.contains("dark");
  new MutationObserver(() => document.dispatchEvent(new CustomEvent(THEME_EVENT)))
    .observe(document.body, { attributes: true, attributeFilter: ["class"] });

  // A token's text as DOM nodes. What cannot be seen gets a mark that is drawn by CSS, so that the element's text
  // stays exactly the token's.
  const INVISIBLE = /[\s\p{Cc}\p{Cf}]/u;
  function tokenNodes(token) {
    const nodes = [];
    let plain = "";
    const flush = () => { if (plain) nodes.push(document.createTextNode(plain)); plain = ""; };
    for (const character of token) {
      if (!INVISIBLE.test(character)) { plain += character; continue; }
      flush();
      const span = document.createElement("span");
      span.className = "mark";
      span.dataset.mark = markOf(character);
      span.textContent = character;
      nodes.push(span);
    }
    flush();
    return nodes;
  }
  function markOf(character) {
    if (character === " ") return "·";
    if (character === "\n") return "↵";
    if (character === "\t") return "→";
    const code = character.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  }

  window.Explorer = {
    get state() { return state; },
    connect(connection) {
      bus = connection;
      bus.write(state);
      ask();
    },
    // Calls `show` with every content that Python gives the widget of the element, beginning with the last one.
    onContent(element, show, part = "") {
      const id = element.closest(".block").id + part;
      receivers[id] = show;
      if (id in contents) show(contents[id]);
    },
    // Below a picture: what vouches for its numbers, and how the one that was clicked comes about. Gives the function to
    // call with a clicked point; its answer stays until the state changes.
    evidence(element) {
      const mark = element.querySelector(".evidence-mark"), words = element.querySelector(".inspection");
      const { id } = element.closest(".block");
      let about = null;
      this.onContent(element, (found) => {
        mark.dataset.state = found?.state ?? "";
        mark.textContent = found?.words ?? "";
        mark.title = [found?.words, found?.details].filter(Boolean).join(" · ");
      }, MARK);
      listen(STATE_EVENT, element, () => { words.hidden ||= about !== state; });
      return async (point) => {
        about = state;
        const text = await Connection.call("inspect", [state, id, point])
          .catch((error) => (error instanceof Connection.Refused ? error.message : ""));
        if (about !== state) return;
        words.textContent = text;
        words.hidden = !text;
      };
    },
    // A person's choice: shown at once, then Python is asked for what follows from it.
    pick(change) {
      const before = state.view;
      set(change);
      if (state.view === before) return ask("pick");
      bus.openTab();
      ask("show");
    },
    // A choice that widgets follow by themselves.
    mark: set,
    // Changes to the model's computation, as texts (interventions.py).
    edits: () => (state.edits ? state.edits.split("~") : []),
    // What is being written under others ends.
    change(edits) {
      stop();
      bus.halt();
      set({ edits: edits.join("~") });
      ask("show");
    },
    // A move among the continuations (tree_commands.py): Python answers with the run it leads to. What is being written stops.
    move(move) {
      if (moves.push(move) > 1) return;
      stop();
      moved = new Promise((resolve) => { tellMoved = resolve; });
      bus.move({ ...state, move });
    },
    // Python has answered the first of the moves; the next is made of the run it led to.
    moved(update) {
      if (update?.change?.turn > state.turn) this.merge(update);
      moves.shift();
      while (moves[0]?.kind === "undo" && !state.generated.length) moves.shift(); // there was no more to be undone
      if (moves.length) bus.move({ ...state, move: moves[0] });
      else tellMoved();
    },
    stop,
    // What is to be written, or run, begins with what is seen.
    async begin() {
      await moved;
      stop();
      return state;
    },
    // The same for another model, which may have been here before.
    async beginWith(checkpoint) { return { ...await Explorer.begin(), own: past.own[checkpoint] ?? null }; },
    // Another token after the selected one.
    take(token) { Explorer.move({ kind: "take", token }); },
    // A slider moved: the next token's distribution follows.
    tune(change) { set(change); ask("tune"); },
    open(view) {
      if (!state.checkpoint || view === state.view) return; // Gradio also names the first tab, before anything runs
      set({ view });
      ask("show");
    },
    // Python's change of the state, and what to ask then. Where it comes with the steps that led to it, the place of each
    // token that was written, they are shown one by one.
    merge({ change, ask: question, steps }) {
      if (change.turn < state.turn) return; // of a generation that has been cancelled since
      if (change.turn > state.turn) pace.drop();
      if (state.prompt) { // or else the page has just been loaded, and what was before is still told
        Connection.writes(Boolean(steps));
        if (String(change.prompt) !== String(state.prompt)) Connection.ran();
      }
      clearTimeout(silence);
      if (steps) {
        written = { change, steps };
        return pace.play(steps.length, question === "show");
      }
      set(change, false);
      ask(question);
    },
    async copyLink() {
      past.write();
      try { await navigator.clipboard.writeText(location.href); }
      catch { prompt("Copy this link:", location.href); } // browsers lend the clipboard to https and localhost alone
    },
    onState: (element, listener) => listen(STATE_EVENT, element, listener),
    onTheme: (element, listener) => listen(THEME_EVENT, element, listener),
    theme: () => window.ExplorerThemes[isDark() ? "dark" : "light"],
    // The visitor's choice outlives a reload (theme.js), and what the address said of it.
    toggleTheme() {
      const dark = document.body.classList.toggle("dark"), url = new URL(location.href);
      url.searchParams.delete("__theme");
      history.replaceState(history.state, "", url);
      try { localStorage.setItem("explorer:theme", dark ? "dark" : "light"); } catch { /* for this visit, then */ }
    },
    tokenNodes,
    inTurn,
  };
})();
