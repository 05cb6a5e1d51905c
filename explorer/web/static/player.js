// @ts-check
// Going through pictures by itself at a steady pace, the next one only once the one before is painted: none pile up.

const EVERY_MS = 800, SOON_MS = 20, PATIENCE_MS = 15_000; // that a picture may take, or else there is none

/**
 * @param {() => boolean} advance goes on to the next; says whether there is another after it
 * @param {() => boolean} isBusy whether the one before is still to be painted
 * @param {(isPlaying: boolean) => void} tell when it begins and ends
 */
export function player(advance, isBusy, tell) {
  let timer = null, since = 0;

  function look() {
    const waited = performance.now() - since;
    if (isBusy() && waited > PATIENCE_MS) return void stop();
    if (isBusy() || waited < EVERY_MS) return wait();
    since = performance.now();
    if (advance()) wait();
    else stop();
  }
  function wait() { timer = setTimeout(look, SOON_MS); }

  /** Says whether it was playing. */
  function stop() {
    const wasPlaying = timer !== null;
    clearTimeout(timer);
    timer = null;
    if (wasPlaying) tell(false);
    return wasPlaying;
  }

  return {
    stop,
    /** What is on show stays as long as any other, but for what it has stayed already. */
    start() {
      since = performance.now() - EVERY_MS;
      tell(true);
      wait();
    },
  };
}
