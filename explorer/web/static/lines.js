// Lines between tokens at the left and at the right of a picture: pointing at a token, or at a line, shows its lines alone
// and all others faint. A tap does so, too, and the arrow keys go from token to token. Nothing is drawn anew: copies of
// the lines' own paths are laid over them.
window.Lines = (() => {
  const NEAR = 8; // pixels from a line
  const EDGE = 0.12; // of the way across, where tokens are pointed at
  const SIDES = ["query", "key"];

  // What a place of the pointer means: { query }, { key }, both of a line, or null.
  function under(plot, event) {
    const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
    const across = xaxis.p2c(event.clientX - box.left - xaxis._offset), down = event.clientY - box.top - yaxis._offset;
    const token = Math.round(yaxis.p2c(down)), { tokens } = plot._lines;
    if (across < EDGE || across > 1 - EDGE) return tokens.has(token) ? { [SIDES[+(across > 0.5)]]: token } : null;
    let nearest = null, least = NEAR;
    for (const { query, key } of segments(plot)) {
      const far = Math.abs(yaxis.c2p(query + (key - query) * across) - down);
      if (far <= least) [nearest, least] = [{ query, key }, far];
    }
    return nearest;
  }

  // Every line of a trace as its query and key.
  function segmentsOf(points) {
    const found = [];
    for (let i = 0; i + 1 < points.length; i++)
      if (points[i].x === 0 && points[i + 1].x === 1) found.push({ query: points[i].y, key: points[i + 1].y });
    return found;
  }
  const lineTraces = (plot) => plot.calcdata.filter(([{ trace }]) => trace.mode === "lines");
  const segments = (plot) => lineTraces(plot).flatMap(segmentsOf);

  function show(plot, chosen) {
    plot._lines.chosen = chosen;
    for (const copy of plot.querySelectorAll(".alone")) copy.remove();
    plot.classList.toggle("isolating", Boolean(chosen));
    if (!chosen) return;
    const { xaxis, yaxis } = plot._fullLayout;
    for (const points of lineTraces(plot)) {
      const path = points[0].node3?.node?.()?.querySelector("path.js-line") ?? null;
      const d = segmentsOf(points).filter((line) => SIDES.every((side) => !(side in chosen) || line[side] === chosen[side]))
        .map(({ query, key }) => `M${xaxis.c2p(0)},${yaxis.c2p(query)}L${xaxis.c2p(1)},${yaxis.c2p(key)}`).join("");
      if (!path || !d) continue;
      const copy = path.cloneNode();
      copy.setAttribute("class", "alone");
      copy.setAttribute("d", d);
      path.after(copy);
    }
  }

  function listen(plot) {
    const keyboard = () => plot.matches(":focus-visible");
    plot.setAttribute("role", "application");
    plot.addEventListener("pointermove", (event) => { if (event.pointerType === "mouse") show(plot, under(plot, event)); });
    plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") show(plot, null); });
    plot.addEventListener("pointerdown", (event) => { if (event.pointerType !== "mouse") show(plot, under(plot, event)); });
    plot.addEventListener("focus", () => { if (keyboard()) show(plot, { query: Explorer.state.query }); });
    plot.addEventListener("blur", () => show(plot, null));
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key], query = Explorer.state.query + step;
      if (event.key === "Escape") return show(plot, null);
      if (!step) return;
      event.preventDefault();
      if (query < 0 || query >= plot._lines.length) return;
      show(plot, { query });
      Explorer.pick({ query });
    });
  }

  return {
    // After every drawing of such a picture; `length` is of the text.
    drawn(plot, length) {
      const first = !plot._lines, dots = plot.calcdata.at(-1);
      plot._lines = { chosen: null, ...plot._lines, length, tokens: new Set(dots.map(({ y }) => y)) };
      if (first) listen(plot);
      show(plot, plot._lines.chosen);
    },
  };
})();
