// @ts-check
// What is there from the beginning; and what Gradio's own events call, whose scripts (event_wiring.py) are in no module.
import { act, beginAsking } from "./asking.js";
import { placeBanner } from "./banner.js";
import { bus, ready } from "./bus.js";
import { onReturn, watchServer } from "./connection.js";
import { find, findAll } from "./dom.js";
import { followBack, openFile } from "./going_back.js";
import { translateGradio } from "./gradios_words.js";
import { copyLink } from "./history.js";
import { language } from "./language.js";
import { keepPlaces } from "./lessons.js";
import { watchLooks } from "./looked.js";
import { followMode, viewAtFirst } from "./mode.js";
import { makeMove, runExample } from "./moves.js";
import { placeNotices } from "./notices.js";
import { watchReloads } from "./reload.js";
import { enterRoom } from "./room.js";
import { keepLeading } from "./room_leader.js";
import { placeRoomLine } from "./room_line.js";
import { keepListening } from "./room_member.js";
import { nameSideways } from "./sideways.js";
import { placeSkip } from "./skip.js";
import { onState, setState, state } from "./state.js";
import { toggleTheme } from "./theme.js";
import { mount, placeViews } from "./views.js";
import { isWriting, setMaking, stop } from "./writing.js";

export { tune } from "./choosing.js";
export { controls } from "./controls.js";
export { beginWriting, runPrompt } from "./moves.js";
export { state } from "./state.js";

let query = {}; // of the address that the page was opened with, before the state is written there

/** Gradio has built its components: their texts are to be in the page's language. */
export async function start() {
  await ready;
  query = Object.fromEntries(new URLSearchParams(location.search));
  setState({ view: viewAtFirst() });
  if (language === "en") build();
  else bus.localize(); // which builds then
}

/** Starts all widgets, and opens what the address names; the page is seen from then on. */
export async function build() {
  await mount(document);
  placeViews();
  followButtons();
  document.body.classList.add("built");
  beginAsking();
  const load = () => act({ kind: "load", query });
  onReturn(() => { if (!state.checkpoint) load(); });
  load();
}

/** Python has ended writing, or failed. */
export const wrote = () => setMaking(false);

/** Buttons, of which one that has nothing to do cannot be pressed. */
function followButtons() {
  for (const example of findAll(document, "#examples button")) example.addEventListener("click", () => runExample(example.dataset.text));
  const acts = { share: copyLink, theme: toggleTheme, "open-file": openFile };
  for (const [id, onClick] of Object.entries(acts)) find(document, `#${id}`).addEventListener("click", () => onClick());
  const [undo, stopping, regenerate] = ["undo", "stop", "regenerate"].map((id) => /** @type {HTMLButtonElement} */ (find(document, `#${id}`)));
  function follow() {
    undo.disabled = !state.generated?.length;
    regenerate.disabled = !(state.generated?.length > (state.began ?? 0));
    stopping.disabled = !isWriting();
  }
  onState(undo, follow);
  follow();
}

document.documentElement.lang = language;
translateGradio();
nameSideways();
followMode();
keepPlaces();
watchLooks();
placeBanner();
placeNotices();
placeRoomLine();
placeSkip();
watchServer();
watchReloads();
followBack();
keepListening();
keepLeading();
enterRoom();

// At once: a script of Gradio's would have to import this module first, and another token may be shown meanwhile.
document.addEventListener("click", ({ target }) => {
  const button = /** @type {Element} */ (target).closest("#stop, #undo, #step");
  if (button?.id === "stop") stop();
  if (button?.id === "undo") makeMove({ kind: "undo" });
  if (button?.id === "step") makeMove({ kind: "step" });
});
