// Words on coloured cells and bars. Plotly writes them in #444 or white, whichever the cell is farther from in brightness;
// on colours of middling brightness neither can be read well. One of black and white always has a contrast of 4.58 or more.
window.Ink = (() => {
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  function channels(colour) {
    probe.fillStyle = colour;
    const hex = /^#(..)(..)(..)$/.exec(probe.fillStyle);
    return hex ? hex.slice(1).map((pair) => parseInt(pair, 16)) : null; // not opaque: what is below shows through
  }

  // Relative luminance (WCAG 2.2), 0 to 1.
  function luminance(rgb) {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  const on = (rgb) => ((luminance(rgb) + 0.05) ** 2 > 1.05 * 0.05 ? "#000000" : "#ffffff");

  // The colour of a value on a scale, as channels.
  function along(scale, low, high, value) {
    const at = Math.max(0, Math.min(1, (value - low) / (high - low || 1)));
    const i = Math.max(1, scale.findIndex(([stop]) => stop >= at)), [[from, first], [to, last]] = [scale[i - 1], scale[i]];
    const one = channels(first), other = channels(last), share = (at - from) / (to - from);
    return one.map((c, j) => c + (other[j] - c) * share);
  }

  return {
    legible(plot) {
      for (const label of plot.querySelectorAll(".heatmap-label")) {
        const { trace } = label.closest(".hm").__data__[0], { z } = label.__data__;
        const { colorscale, cmin = trace.zmin, cmax = trace.zmax } = plot._fullLayout[trace.coloraxis] ?? trace;
        label.querySelector("text").style.fill = on(along(colorscale, cmin, cmax, z));
      }
      for (const text of plot.querySelectorAll(".bartext-inside")) {
        const rgb = channels(text.parentElement.querySelector("path").style.fill);
        if (rgb) text.style.fill = on(rgb);
      }
    },
  };
})();
