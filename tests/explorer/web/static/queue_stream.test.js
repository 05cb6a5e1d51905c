import assert from "node:assert/strict";
import test from "node:test";
import { inTime, watchStream } from "../../../../explorer/web/static/queue_stream.js";

const bytes = (text) => new TextEncoder().encode(text);
const taken = (event_id) => Promise.resolve(Response.json({ event_id }));
const message = (event) => `data: {"msg":"estimation","event_id":"${event}"}\n\n`;
const turns = () => new Promise((resolve) => setTimeout(resolve, 5));

/** A stream that somebody reads, what was read of it, and whether a question is known to be taken. */
async function opened() {
  let controller, text = "";
  const body = new ReadableStream({ start: (it) => { controller = it; } });
  const page = new AbortController();
  const { body: watched } = await watchStream(page.signal, Promise.resolve(new Response(body)));
  (async () => { for await (const chunk of watched) text += new TextDecoder().decode(chunk); })().catch(() => {});
  return { page, send: (it) => { controller.enqueue(bytes(it)); return turns(); }, end: () => controller.close(), read: () => text };
}
function ask(event) {
  const question = { isTaken: false };
  inTime(taken(event)).then(async (answer) => { question.isTaken = (await answer.json()).event_id === event; });
  return question;
}

test("with no stream open a question is taken at once", async () => {
  assert.equal((await (await inTime(taken("a1"))).json()).event_id, "a1");
});

test("a question is taken once the stream has told of it, before or after", async () => {
  const { send, read, page } = await opened(), after = ask("a1");
  await turns();
  assert.equal(after.isTaken, false);
  await send(message("b2"));
  assert.equal(after.isTaken, false);
  await send(message("a1"));
  assert.equal(after.isTaken, true);
  const before = ask("b2");
  await turns();
  assert.equal(before.isTaken, true);
  assert.equal(read(), message("b2") + message("a1"));
  page.abort();
});

test("an id is read where it is cut, and a text that looks like one is none", async () => {
  const { send, page } = await opened(), cut = ask("abcdef"), quoted = ask("fedcba"), whole = message("abcdef");
  await send(`data: {"text":${JSON.stringify('é "event_id":"fedcba"')}}\n\n`);
  for (const character of whole.slice(0, -10)) await send(character);
  await send(whole.slice(-10));
  assert.deepEqual([cut.isTaken, quoted.isTaken], [true, false]);
  page.abort();
});

test("a stream that is closed, or ends, lets the page open another", async () => {
  const { page } = await opened(), closed = ask("a1");
  page.abort();
  await turns();
  const { end } = await opened(), ended = ask("b2");
  await turns();
  assert.deepEqual([closed.isTaken, ended.isTaken], [true, false]);
  end();
  await turns();
  assert.equal(ended.isTaken, true);
});

test("a stream that is not had is no stream", async () => {
  const { signal } = new AbortController(), lost = new TypeError("Failed to fetch");
  await assert.rejects(watchStream(signal, Promise.reject(lost)), lost);
  await inTime(taken("a1"));
  assert.equal((await watchStream(signal, Promise.resolve(new Response("no", { status: 404 })))).status, 404);
  await inTime(taken("a1"));
});

test("a question that is refused is answered at once", async () => {
  const { page } = await opened();
  assert.equal((await inTime(Promise.resolve(new Response("full", { status: 503 })))).status, 503);
  page.abort();
});
