// @ts-check
import { pick } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { find, span } from "../../static/dom.js";
import { _, inPieces, ngettext } from "../../static/language.js";
import { onState, state } from "../../static/state.js";
import { tokenNodes } from "../../static/token_text.js";

const STEP_MS = 500;

/** @param {HTMLElement} element */
export default function playback(element) {
  const told = find(element, ".told"), slider = element.querySelector("input");
  const [back, play, forward] = element.querySelectorAll("button");
  let value = { first: 0, tokens: [], unseen: 0 }, timer = 0, playedTo = -1;

  // Place i is after the token before the generated token i; the last place is after them all.
  const last = () => value.tokens.length - 1;
  const place = () => state.query - value.first;
  const within = (i) => Math.max(0, Math.min(last(), i));

  function show(content) {
    value = content;
    slider.max = String(last());
    element.hidden = last() < 1;
    follow();
  }

  function follow() {
    const at = place(), total = value.unseen + last();
    if (timer && (at !== playedTo || element.hidden)) pause(); // somebody chose another token
    slider.value = String(within(at));
    back.disabled = at <= 0;
    forward.disabled = at >= last();
    told.replaceChildren(...(at < 0 ? [before(total)] : at >= last() ? [behind(total)] : between(at, total)));
    slider.setAttribute("aria-valuetext", told.textContent);
  }

  const before = (total) => ngettext(
    "The prompt is on show. Play goes through the {count} generated token.",
    "The prompt is on show. Play goes through the {count} generated tokens.",
    total,
  );
  const behind = (total) => ngettext(
    "The end of {count} step: what comes next is not chosen yet.",
    "The end of {count} steps: what comes next is not chosen yet.",
    total,
  );
  const between = (at, total) => inPieces(
    _("step {step} of {total}: after {token} the model wrote {next}"),
    { step: value.unseen + at + 1, total, token: token(at), next: token(at + 1) },
  );
  const token = (i) => span("token", ...tokenNodes(value.tokens[i]));

  function go(i) {
    playedTo = within(i);
    pick({ query: value.first + playedTo });
  }

  function label(text, ariaLabel) {
    play.textContent = text;
    play.ariaLabel = ariaLabel;
  }

  function pause() {
    clearInterval(timer);
    timer = 0;
    label(_("Play"), _("play"));
  }

  function start() {
    go(place() >= last() ? 0 : place());
    label(_("Pause"), _("pause"));
    timer = window.setInterval(() => {
      if (!element.isConnected) return pause();
      go(place() + 1);
      if (place() >= last()) pause();
    }, STEP_MS);
  }

  function stepTo(i) {
    pause();
    go(i);
  }

  play.addEventListener("click", () => (timer ? pause() : start()));
  back.addEventListener("click", () => stepTo(place() - 1));
  forward.addEventListener("click", () => stepTo(place() + 1));
  slider.addEventListener("input", () => stepTo(+slider.value));
  element.hidden = true;
  onState(element, follow);
  onContent(element, show);
}
