const box = element.querySelector(".playback"), told = element.querySelector(".told");
const slider = box.querySelector("input"), play = box.querySelector(".play");
const STEP_MS = 500;
let value = { first: 0, tokens: [], unseen: 0 }, timer = 0, playedTo = -1;

// Place i is after the token before the generated token i; the last place is after them all.
const last = () => value.tokens.length - 1;
const place = () => Explorer.state.query - value.first;
const within = (i) => Math.max(0, Math.min(last(), i));

function show(content) {
  value = content;
  slider.max = last();
  element.hidden = last() < 1;
  follow();
}

function follow() {
  const at = place(), total = value.unseen + last();
  if (timer && (at !== playedTo || element.hidden)) pause(); // somebody chose another token
  slider.value = within(at);
  box.querySelector(".back").disabled = at <= 0;
  box.querySelector(".forward").disabled = at >= last();
  told.replaceChildren();
  if (at < 0) told.append(`The prompt is on show. Play goes through the ${total} generated ${total === 1 ? "token" : "tokens"}.`);
  else if (at >= last()) told.append(`The end of ${total} ${total === 1 ? "step" : "steps"}: what comes next is not chosen yet.`);
  else told.append(`step ${value.unseen + at + 1} of ${total}: after `, token(at), " the model wrote ", token(at + 1));
  slider.setAttribute("aria-valuetext", told.textContent);
}

function token(i) {
  const chip = document.createElement("span");
  chip.className = "token";
  chip.append(...Explorer.tokenNodes(value.tokens[i]));
  return chip;
}

function go(i) {
  playedTo = within(i);
  Explorer.pick({ query: value.first + playedTo });
}

function pause() {
  clearInterval(timer);
  timer = 0;
  play.textContent = "Play";
  play.setAttribute("aria-label", "play");
}

function start() {
  go(place() >= last() ? 0 : place());
  play.textContent = "Pause";
  play.setAttribute("aria-label", "pause");
  timer = setInterval(() => {
    if (!element.isConnected) return pause();
    go(place() + 1);
    if (place() >= last()) pause();
  }, STEP_MS);
}

play.addEventListener("click", () => (timer ? pause() : start()));
box.querySelector(".back").addEventListener("click", () => { pause(); go(place() - 1); });
box.querySelector(".forward").addEventListener("click", () => { pause(); go(place() + 1); });
slider.addEventListener("input", () => { pause(); go(+slider.value); });
element.hidden = true;
Explorer.onState(element, follow);
Explorer.onContent(element, show);
