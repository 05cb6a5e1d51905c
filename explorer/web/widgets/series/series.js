// @ts-check
import { chooseStep } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { countDraw, find } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { areOld } from "../../static/old_pictures.js";
import { player } from "../../static/player.js";
import { onState } from "../../static/state.js";
import { stepSlider } from "../../static/step_slider.js";

/** @param {HTMLElement} element */
export default function series(element) {
  const box = find(element, ".series"), play = /** @type {HTMLButtonElement} */ (find(box, ".play"));
  const steps = stepSlider(box, "checkpoint", _("step of its training"));
  const playing = player(advance, areOld, (isPlaying) => { play.textContent = isPlaying ? _("Pause") : _("Play"); });

  // Whether there is another after it.
  function advance() {
    steps.go(steps.place() + 1);
    return steps.place() < steps.last();
  }

  function toggle() {
    if (playing.stop()) return;
    if (steps.place() >= steps.last()) chooseStep(steps.nameAt(0));
    playing.start();
  }

  play.textContent = _("Play");
  play.addEventListener("click", toggle);
  // Whatever else somebody does stops it; the button has the focus once it was pressed.
  const isPress = (event) => play.contains(/** @type {Node} */ (event.target)) && (event.type === "pointerdown" || ["Enter", " "].includes(event.key));
  for (const type of ["pointerdown", "keydown", "wheel"])
    document.addEventListener(type, (event) => { if (!isPress(event)) playing.stop(); }, { capture: true, passive: true });
  onState(element, steps.follow);
  onContent(element, (moments) => {
    box.hidden = !moments.length;
    steps.show(moments);
    countDraw(box);
  });
}
