// @ts-check
import { pick, tune } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { countDraw, find, make, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { isNamed } from "../../static/mode.js";
import { makeMove } from "../../static/moves.js";
import { onState, setState, state } from "../../static/state.js";
import { tokenNodes } from "../../static/token_text.js";

const VISITED = "explorer:visited"; // its place in the browser's storage

/** @param {HTMLElement} element */
export default function guess(element) {
  const card = find(element, ".guess"), form = find(card, "form"), seen = find(card, ".seen"), next = find(seen, ".next");
  const box = /** @type {HTMLInputElement} */ (find(form, "input"));
  let isHidden = !remembered() && !isNamed, place = null, content = null;
  let guessedAt = null; // the place that the guess in the state is about

  function show(given) {
    content = given;
    const { tokens, how, after, told, wrote, is_last: isLast } = content;
    find(seen, ".heading").textContent = _("What can come after {token}", { token: after });
    find(seen, "ol").replaceChildren(...tokens.map(row));
    find(seen, ".first").replaceChildren(...tokenNodes(tokens[0].token), ` ${tokens[0].percent}`);
    find(seen, ".how").textContent = how;
    find(seen, "output").textContent = (guessedAt === placeOf(state) && told) || wrote;
    next.textContent = isLast ? _("Next word") : _("To the end of the text");
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
    hideTheRest();
  }

  function hideTheRest() { document.body.classList.toggle("guessing", isHidden); } // of the simple page, which would tell

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    isHidden = false;
    remember();
    reveal();
    guessedAt = placeOf(state);
    tune({ guess: box.value.trim() });
    next.focus({ preventScroll: true });
  });
  next.addEventListener("click", () => {
    const last = state.prompt.length + state.generated.length - 1;
    if (!content.is_last) return pick({ query: last, key: last - 1 });
    makeMove({ kind: "step" });
  });
  find(seen, ".again").addEventListener("click", () => {
    isHidden = true;
    reveal();
    box.focus();
  });
  hideTheRest(); // before it is seen at all
  // A guess is told as long as the place is the same.
  onState(element, () => {
    const now = placeOf(state);
    if (place === now) return;
    if (place === null && state.guess) guessedAt = now; // the address has it
    place = now;
    if (guessedAt !== now && state.guess) setState({ guess: "" });
    box.value = state.guess ?? "";
  });
  onContent(element, show);
}

/** @param {import("../../static/state.js").State} at */
const placeOf = ({ prompt, generated, query }) => `${prompt} ${generated} ${query}`;

function remembered() {
  try { return localStorage.getItem(VISITED); } catch { return null; } // not every frame has a storage
}
function remember() {
  try { localStorage.setItem(VISITED, "true"); } catch { /* for this visit, then */ }
}
