// @ts-check
// Which picture was looked at last: the one that was clicked, or had the keyboard.

const PICTURE = "#view .panels > .block, #next-token, #strip";
let last = "";

/** The element id of the picture that was looked at last; "" before any. */
export const lastLookedAt = () => last;

/** Has the page remember what is looked at. */
export function watchLooks() {
  for (const kind of ["pointerdown", "focusin"])
    document.addEventListener(kind, ({ target }) => {
      const picture = /** @type {Element} */ (target).closest?.(PICTURE);
      if (picture) last = picture.id;
    });
}
