// @ts-check
// Gradio says its own words in the language that the browser says it speaks, and asks before any other script of ours has
// run: the browser says that it speaks the page's.
Object.defineProperty(navigator, "language", { get: () => /** @type {any} */ (window).gradio_config.language });
