// @ts-check
// Pictures narrower than a telephone has them, as beside a lesson's words on the stage: there the picture itself has the
// room of its scale of colours, and what is written below it goes on in another line.

const NARROW = 300, LETTER = 6.5; // pixels: of a picture; of a letter of a title, about
const SMALLEST = 10, NAME = 40; // pixels of letters beside an axis; that the name of a line takes at its end

/**
 * A picture as it is drawn in a width: as it is, where it has the room.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Picture
 * @param {Picture} picture
 * @param {number} width
 * @returns {Picture}
 */
export function inWidth(picture, width) {
  if (width >= NARROW) return picture;
  const data = picture.data.map((trace) => (trace.type === "heatmap" ? { ...trace, showscale: false } : trace));
  const layout = Object.entries(picture.layout).map(([name, part]) => [name, /^[xy]axis/.test(name) ? axisIn(part, width) : part]);
  const { margin } = picture.layout, isNamed = data.some(({ textposition }) => textposition === "middle right");
  return { ...picture, data, layout: { ...Object.fromEntries(layout), ...(isNamed && { margin: { ...margin, r: Math.max(NAME, margin?.r ?? 0) } }) } };
}

function axisIn({ tickfont, title, ...axis }, width) {
  const text = title?.text && title.text.split("<br>").map((line) => wrapped(line, width / LETTER)).join("<br>");
  return { ...axis, tickfont: { ...tickfont, size: SMALLEST }, ...(title && { title: { ...title, text } }) };
}

/** A line in as many as its words take. @param {string} line @param {number} most letters of each */
export function wrapped(line, most) {
  const lines = [""];
  for (const word of line.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length <= most || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.join("<br>");
}
