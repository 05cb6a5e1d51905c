import assert from "node:assert/strict";
import test from "node:test";
import { _, splitMessage, lookUpMessage, MESSAGES, N_, ngettext } from "../../../../explorer/web/static/text.js";

/** Sets a language with three forms of a noun, like Polish. */
function inPolish(act) {
  const form = (n) => (n === 1 ? 0 : n % 10 >= 2 && n % 10 <= 4 && !(n % 100 >= 12 && n % 100 <= 14) ? 1 : 2);
  Object.assign(MESSAGES, {
    "": Array.from({ length: 200 }, (nothing, n) => form(n)),
    "after {token} it wrote {next}": "napisał {next} po {token}",
    "{count} token of {text}": ["{count} a {text}", "{count} b", "{count} c"],
  });
  try { act(); } finally { for (const message of Object.keys(MESSAGES)) delete MESSAGES[message]; }
}

const tokens = (count) => ngettext("{count} token of {text}", "{count} tokens of {text}", count, { text: "fox" });

test("a message without a translation is English", () => {
  assert.equal(_("after {token} it wrote {next}", { token: "a", next: 2 }), "after a it wrote 2");
  assert.deepEqual([0, 1, 2, 201].map(tokens), ["0 tokens of fox", "1 token of fox", "2 tokens of fox", "201 tokens of fox"]);
});

test("a message is looked up, and without values it stays a template", () => inPolish(() => {
  assert.equal(_("after {token} it wrote {next}", { token: "a", next: "b" }), "napisał b po a");
  assert.equal(_("after {token} it wrote {next}"), "napisał {next} po {token}");
}));

test("numbers are formatted as in Python, and two braces mean one", () => {
  const values = { count: 4096, share: 0.0797, weight: 0.25, near: 0.1, text: "as it is" };
  assert.equal(_("%{{y}}: {count:,} · {share:.0%} · {weight:.3f} · {near:g} · {text:.2f}", values), "%{y}: 4,096 · 8% · 0.250 · 0.1 · as it is");
});

test("a marked message is looked up when it is shown", () => {
  const kept = N_("after {token} it wrote {next}");
  assert.deepEqual([kept, lookUpMessage(kept)], ["after {token} it wrote {next}", "after {token} it wrote {next}"]);
  inPolish(() => assert.equal(lookUpMessage(kept), "napisał {next} po {token}"));
});

test("values are inserted unchanged", () => {
  for (const token of ["{next}", "{token}", "$&", "$1", "{", ""])
    assert.equal(_("after {token} it wrote {next}", { token, next: "b" }), `after ${token} it wrote b`);
});

test("a language has its own plural forms, and large counts use those of small ones", () => inPolish(() => {
  assert.deepEqual([1, 3, 5, 22, 112, 1001, 1002, 1012].map(tokens), ["1 a fox", "3 b", "5 c", "22 b", "112 c", "1001 c", "1002 b", "1012 c"]);
}));

test("a count may have its own format", () => {
  assert.equal(ngettext("{count} token", "{count} tokens", 1234, { count: "1,234" }), "1,234 tokens");
});

test("nodes are placed where the translation has them", () => {
  const [token, next] = [{ node: 1 }, { node: 2 }];
  const pieces = () => splitMessage(_("after {token} it wrote {next}"), { token, next: [next, "!"] });
  assert.deepEqual(pieces(), ["after ", token, " it wrote ", next, "!"]);
  inPolish(() => assert.deepEqual(pieces(), ["napisał ", next, "!", " po ", token]));
});

test("a value in pieces is no template", () => {
  assert.deepEqual(splitMessage("{count} of {all}", { count: 0, all: "{count}" }), ["0", " of ", "{count}"]);
});
