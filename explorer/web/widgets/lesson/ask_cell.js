// @ts-check
import { make } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { rove, stopAt } from "../../static/roving.js";
import { reachWhileScrolling } from "../../static/sideways.js";
import { marked } from "./ask_choice.js";

/** @type {import("./question.js").Ask} */
export function askCell({ rows, columns, there }, judged, reply) {
  const cells = rows.map((row, i) => columns.map((column, j) => cell(i, j, row, column)));
  const head = make("tr", {}, make("td"), ...columns.map((column) => make("th", { scope: "col" }, make("span", {}, column))));
  const table = make("table", { className: "cells" }, head, ...rows.map((row, i) => make("tr", {}, make("th", { scope: "row" }, row), ...cells[i].map((one) => make("td", {}, one)))));
  if (!judged) {
    const all = cells.flat().filter((one) => one.tagName === "BUTTON");
    stopAt(all, all[0]);
    rove(table, {
      at: ({ target }) => placeOf(target),
      size: () => ({ rows: rows.length, columns: columns.length }),
      go: ({ row, column }) => { if (there[row][column]) { stopAt(all, cells[row][column]); cells[row][column].focus(); } },
    });
  }
  const box = make("div", { className: "scrolls" }, table);
  return [judged ? reachWhileScrolling(box) : box]; // or else its buttons are reached

  function placeOf(target) {
    const row = cells.findIndex((ones) => ones.includes(target));
    return row < 0 ? null : { row, column: cells[row].indexOf(target) };
  }

  function cell(i, j, row, column) {
    if (!there[i][j]) return make("span", { className: "none" });
    if (!judged) return make("button", { type: "button", className: "cell", ariaLabel: _("row {row}, column {column}", { row, column }), onclick: () => reply(`${i}_${j}`) });
    const { values, right } = judged.truth, most = Math.max(...values.flat().map((value) => Math.abs(value?.[0] ?? 0)));
    const isRight = right[0] === i && right[1] === j, isYours = judged.reply === `${i}_${j}`, [value, written] = values[i][j];
    const made = marked(make("span", { className: "cell", title: written }, isRight ? "✓" : isYours ? "•" : ""), isRight, isYours);
    made.style.setProperty("--share", String(Math.max(0, value) / (most || 1)));
    return made;
  }
}
