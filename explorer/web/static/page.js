// @ts-check
// What is there from the beginning; and what Gradio's own events call, whose scripts (page.py) are in no module.
import { placeBanner } from "./banner.js";
import { act, beginAsking } from "./asking.js";
import { openView } from "./choosing.js";
import { onReturn, watchServer } from "./connection.js";
import { followBack } from "./going_back.js";
import { translateGradio } from "./gradios_words.js";
import { language } from "./language.js";
import { keepPlaces } from "./lessons.js";
import { watchLooks } from "./looked.js";
import { makeMove } from "./moves.js";
import { watchReloads } from "./reload.js";
import { enterRoom } from "./room.js";
import { keepLeading } from "./room_leader.js";
import { placeRoomLine } from "./room_line.js";
import { keepListening } from "./room_member.js";
import { followMode, modeOf, viewAtFirst } from "./mode.js";
import { nameSideways } from "./sideways.js";
import { placeNotices } from "./notices.js";
import { placeSkip } from "./skip.js";
import { setState, state } from "./state.js";
import { roveTabs } from "./tabs.js";
import { setMaking, stop } from "./writing.js";

export { tune } from "./choosing.js";
export { openFile } from "./going_back.js";
export { copyLink } from "./history.js";
export { controls } from "./controls.js";
export { beginWriting, changeModel, runExample, runPrompt } from "./moves.js";
/** Opens what the address names, once all widgets stand, which are seen from then on. */
export async function start() {
  await Promise.allSettled(/** @type {any} */ (window).explorerStarting ?? []); // their modules may be on the way (widget.py)
  document.body.classList.add("built");
  setState({ view: viewAtFirst() });
  beginAsking();
  const load = () => act({ kind: "load", query: Object.fromEntries(new URLSearchParams(location.search)) });
  onReturn(() => { if (!state.checkpoint) load(); });
  load();
}
/** What Gradio is to change of its two bars of tabs, the simple page's and the full one's, for the tab that the state names. */
export function openedTabs() {
  const opened = { __type__: "update", selected: state.view }; // as Gradio's own server would say it
  return modeOf(state.view) === "simple" ? [opened, undefined] : [undefined, opened];
}
let isOfMenu = false; // the tab that somebody chose last, in the menu of those that the bar has no room for
/** Gradio has opened a tab. It names those too that it opened for the state, when this may be another again. @param {string} view */
export function openedTab(view) {
  if (isOfMenu) openView(view);
  isOfMenu = false;
}
/** Python has ended writing, or failed. */
export const wrote = () => setMaking(false);
export { state } from "./state.js";
export { toggleTheme } from "./theme.js";

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
roveTabs("#views .tab-wrapper");
roveTabs("#steps .tab-wrapper");

// At once: a script of Gradio's would have to import this module first, and another token may be shown meanwhile.
document.addEventListener("click", ({ target }) => {
  const button = /** @type {Element} */ (target).closest("#stop, #undo, #step");
  if (button?.id === "stop") stop();
  if (button?.id === "undo") makeMove({ kind: "undo" });
  if (button?.id === "step") makeMove({ kind: "step" });
});
// Python works while Gradio opens the tab, which takes as long. Which one a line of the menu stands for, Gradio says.
document.addEventListener("click", ({ target }) => {
  const [tab, line] = ["[data-tab-id]", ".overflow-dropdown button"].map((place) => /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest(place)));
  if (tab?.closest("#views, #steps")) openView(tab.dataset.tabId);
  if (line) isOfMenu = true;
}, { capture: true });
