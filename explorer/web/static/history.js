// The address of the page holds all that is chosen. Tabs and runs are steps that the browser's Back goes through; clicks
// and sliders replace the step they are made at.
window.ExplorerHistory = (goTo) => {
  const SOON_MS = 250;
  const left = new Map(); // run of the history -> the state it was left in
  const own = history.state?.own ?? {}; // model -> its continuations of a text, and outlives a reload
  let run = history.state?.run ?? 0, seen = null, timer = 0;

  const isOtherRun = (a, b) => a.checkpoint !== b.checkpoint || String(a.prompt) !== String(b.prompt);

  function addressOf(state) {
    const url = new URL(location.href);
    for (const [name, value] of Object.entries(state)) {
      const text = Array.isArray(value) ? value.join(".") : String(value);
      if (text) url.searchParams.set(name, text);
      else url.searchParams.delete(name);
    }
    url.searchParams.delete("text"); // the ids say the same, exactly
    url.searchParams.delete("turn");
    return url;
  }

  function write() {
    clearTimeout(timer);
    if (seen) history.replaceState({ run, own, state: seen }, "", addressOf(seen));
  }

  // Going back to a run finds it as it was left, with all that was written since; among its own steps only tabs change.
  window.addEventListener("popstate", ({ state: step }) => {
    if (!step?.state || !seen) return;
    left.set(run, seen);
    const isSameRun = step.run === run;
    [run, seen] = [step.run, { ...(left.get(step.run) ?? step.state), view: step.state.view }];
    write();
    goTo(seen, isSameRun);
  });

  return {
    own,
    write,
    // The state is another now.
    follow(state) {
      const before = seen;
      if (!before || (before.view === state.view && !isOtherRun(before, state))) {
        clearTimeout(timer);
        timer = setTimeout(write, SOON_MS);
        seen = state;
        return;
      }
      write();
      if (isOtherRun(before, state)) {
        left.set(run, before);
        run = Date.now();
      }
      seen = state;
      history.pushState(null, "");
      write();
    },
  };
};
