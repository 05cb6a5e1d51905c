const presets = [...element.querySelectorAll("button")].map((button) => [button, JSON.parse(button.dataset.settings)]);

function follow() {
  for (const [button, settings] of presets) {
    const active = Object.entries(settings).every(([name, value]) => Math.abs(Explorer.state[name] - value) < 1e-9);
    button.setAttribute("aria-pressed", active);
  }
}

for (const [button, settings] of presets) {
  button.title = Object.entries(settings).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(", ");
  button.addEventListener("click", () => {
    Explorer.tune(settings);
    trigger("choose");
  });
}
follow();
Explorer.onState(element, follow);
