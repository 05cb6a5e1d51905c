// @ts-check
// What a point of a picture, as Plotly names it in an event, stands for.

/** On an axis of tokens a point's coordinate is its label; the label's place on the axis is the position. */
export const positionOf = (point, axis) => point[`${axis}axis`].d2c(point[axis]);

/**
 * The fields of the state that a click on a point changes.
 * @param {Record<string, string | string[]>} selects by what a point has (an axis, its customdata), the field or fields
 */
export function selectedBy(point, selects) {
  const change = {};
  for (const [source, field] of Object.entries(selects))
    if (Array.isArray(field)) field.forEach((name, i) => { change[name] = point.customdata[i]; });
    else change[field] = source === "customdata" ? point.customdata : positionOf(point, source);
  return change;
}
