// @ts-check
// Gradio's loading tracker counts its seconds frame by frame, and goes on once it is gone: a tenth of a core for every
// open page, for ever. Nobody sees the count, so once a second is enough.
// This script stands in the page itself, as Gradio takes the page's function for frames when its scripts are loaded.
{
  const draw = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (step) =>
    String(step).includes("performance.now()-") ? setTimeout(() => draw(step), 1000) : draw(step);
}
