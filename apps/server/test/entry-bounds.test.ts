import { afterAll, beforeAll, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { serve, type Serving } from "./serving.ts";

let serving: Serving;
beforeAll(async () => {
  serving = await serve({ openStore: () => createMemoryStore() });
  await serving.begin("notes");
});
afterAll(() => serving.close());

const many = (count: number): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`field${index}`, 1]));

it.each([
  ["1,001 members", many(1001), 400, "INPUT_INVALID"],
  ["101,000 members", many(101_000), 413, "REQUEST_TOO_LARGE"],
  ["more than a mebibyte", { text: "x".repeat(1024 * 1024) }, 400, "INPUT_INVALID"],
  ["two mebibytes", { text: "x".repeat(2 * 1024 * 1024) }, 413, "REQUEST_TOO_LARGE"],
])("refuses an entry of %s on every route that takes one", async (_what, entry, status, code) => {
  const before = (await serving.ask("GET", "/sessions/notes/entry")).body["entry"];
  const ifMatch = { "if-match": '"1"' };
  const asked = [
    await serving.ask("PUT", "/sessions/other", { body: { entry } }),
    await serving.ask("PUT", "/sessions/notes/entry", { body: { sessionId: "s", ...entry }, headers: ifMatch }),
    await serving.ask("PATCH", "/sessions/notes/entry", { body: entry }),
  ];
  for (const answer of asked) expect([answer.status, answer.body["code"]]).toEqual([status, code]);
  // With records, a body may be larger.
  const appended = await serving.ask("POST", "/sessions/notes/records", { body: { drafts: [], entry } });
  expect([appended.status, appended.body["code"]]).toEqual([400, "INPUT_INVALID"]);
  expect((await serving.ask("GET", "/sessions/notes/entry")).body["entry"]).toEqual(before);
});

it("takes an entry of 999 members and its id", async () => {
  expect((await serving.ask("PATCH", "/sessions/notes/entry", { body: many(999) })).status).toBe(200);
  expect((await serving.ask("PATCH", "/sessions/notes/entry", { body: { one: 1 } })).status).toBe(400);
  expect((await serving.ask("PATCH", "/sessions/notes/entry", { body: { field0: null, one: 1 } })).status).toBe(200);
});
