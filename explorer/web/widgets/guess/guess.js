// @ts-check
import { tune } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { countDraw, find, make, span } from "../../static/dom.js";
import { onState, setState, state } from "../../static/state.js";
import { tokenNodes } from "../../static/token_text.js";

const VISITED = "explorer:visited"; // its place in the browser's storage

/** @param {HTMLElement} element @param {import("../../static/contents.js").Gradio} gradio */
export default function guess(element, { emit }) {
  const card = find(element, ".guess"), form = find(card, "form"), seen = find(card, ".seen");
  const box = /** @type {HTMLInputElement} */ (find(form, "input"));
  let isHidden = !remembered(), turn = null;

  function show({ tokens, told }) {
    find(seen, "ol").replaceChildren(...tokens.map(row));
    find(seen, ".first").replaceChildren(...tokenNodes(tokens[0].token), ` ${tokens[0].percent}`);
    find(seen, "output").textContent = state.guess ? told : "";
    card.hidden = false;
    reveal();
    countDraw(card);
  }

  function row({ token, share, percent }) {
    const bar = make("i", { className: "bar" });
    bar.style.width = `${100 * share}%`;
    return make("li", {}, span("token", ...tokenNodes(token)), span("track", bar), span("percent", percent));
  }

  function reveal() {
    form.hidden = !isHidden;
    seen.hidden = isHidden;
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    isHidden = false;
    remember();
    reveal();
    tune({ guess: box.value.trim() });
    find(seen, ".next").focus({ preventScroll: true });
  });
  find(seen, ".next").addEventListener("click", () => emit.step());
  find(seen, ".again").addEventListener("click", () => {
    isHidden = true;
    reveal();
    box.focus();
  });
  // A guess is about one place of one text.
  onState(element, () => {
    const place = `${state.turn} ${state.generated?.length} ${state.query}`;
    if (turn !== null && turn !== place && state.guess) setState({ guess: "" });
    if (turn !== place) box.value = state.guess ?? "";
    turn = place;
  });
  onContent(element, show);
}

function remembered() {
  try { return localStorage.getItem(VISITED); } catch { return null; } // not every frame has a storage
}
function remember() {
  try { localStorage.setItem(VISITED, "true"); } catch { /* for this visit, then */ }
}
