// The theme that the visitor chose last, before anything is drawn. `?__theme=` in the address goes first, which Gradio
// reads, and without either it is the system's.
(() => {
  function apply() {
    let chosen = null;
    try { chosen = localStorage.getItem("explorer:theme"); } catch { return; } // not every frame has a storage
    if (chosen && !new URL(location.href).searchParams.has("__theme")) document.body.classList.toggle("dark", chosen === "dark");
  }
  apply();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTimeout(apply)); // Gradio follows it first
})();
