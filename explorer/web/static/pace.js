// @ts-check
// Tokens come faster than eyes and browsers follow: they are shown one after another, and each for as long, the next when
// what follows from the one before is drawn.

const MS_A_TOKEN = 1000 / 18, SOON_MS = 5;

/**
 * @param {(count: number, isLast: boolean) => void} show shows the first `count` of the tokens
 * @param {() => any} isBusy whether the one before is still to be drawn
 */
export function paced(show, isBusy) {
  let written = null, shown = 0, due = 0, timer = null;

  function advance() {
    if (isBusy()) return wait(SOON_MS);
    timer = null;
    const now = performance.now(), before = shown;
    for (; shown < written.count && due <= now; due += MS_A_TOKEN) shown++; // a page that was busy catches up
    if (shown > before) show(shown, written.complete && shown === written.count);
    if (written && shown < written.count) wait(due - performance.now());
  }
  function wait(ms) { timer = setTimeout(advance, ms); }

  return {
    /** So many tokens are written, those before among them; whether they are all. */
    play(count, complete) {
      written = { count, complete };
      if (timer !== null) return;
      due = Math.max(due, performance.now());
      advance();
    },
    /** What was not shown yet never is. Says whether there was any, or more to come. */
    drop() {
      const playing = written !== null && !(written.complete && shown === written.count);
      clearTimeout(timer);
      [written, shown, due, timer] = [null, 0, 0, null];
      return playing;
    },
  };
}
