// @ts-check
// The browser's Back and Forward.
import { act, ask } from "./asking.js";
import { bus } from "./bus.js";
import { followInHistory, own, startHistory } from "./history.js";
import { bring } from "./places.js";
import { chooseFile } from "./saved.js";
import { modelOf } from "./series.js";
import { keptBy, setState, state } from "./state.js";
import { dropUnseen, isWriting } from "./writing.js";

/** Has the state go where the history leads, and the history know every state. */
export function followBack() {
  startHistory(goTo);
  keptBy((now, before) => {
    const left = modelOf(before.checkpoint); // its steps share them
    if (left && left !== modelOf(now.checkpoint)) own[left] = continuationsOf(before);
    followInHistory(now);
  });
}

/** Opens a file that the page saved. */
export const openFile = () => chooseFile((there) => goTo(there, false), bring);

/** Goes to a state. @param {import("./state.js").State} there @param {boolean} isSameRun whether it is of the run that is seen */
export function goTo(there, isSameRun) {
  if (isSameRun) setState({ view: there.view });
  else {
    if (isWriting()) bus.halt();
    dropUnseen();
    setState({ ...there, turn: state.turn + 2 });
  }
  if (isSameRun) ask("show");
  else act({ kind: "follow" });
}

/** @param {import("./state.js").State} state */
const continuationsOf = ({ prompt, dropped, generated, branches, began }) => ({ prompt, dropped, generated, branches, began });
