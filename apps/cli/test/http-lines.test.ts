import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createServer, type Server } from "@throughline/server";
import { createSqliteStore } from "@throughline/store-sqlite";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

const home = temporaryDirectory();
let server: Server;
let token = "";
beforeAll(async () => {
  const talk = Array.from({ length: 20 }, (_, index) => [
    { id: `u${index}`, ...user(`Look after quay ${index}. `.repeat(8)) },
    { id: `a${index}`, ...assistant(`Quay ${index} is looked after. `.repeat(12)) },
  ]);
  const notes = [
    { id: "r1", ...user("the harbour lights") },
    { id: "r2", ...assistant("they are lit") },
  ];
  await seed(home.path, [
    { key: "notes", entry: { label: "Harbour" }, drafts: notes },
    { key: "long", drafts: talk.flat() },
  ]);
  await runHere(home.path, ["chat", "--key", "talk", "--once", "hello", "--model", "offline"]);
  await runHere(home.path, ["checkpoint", "long", "--model", "offline"]);
  const path = join(home.path, "sessions.db");
  server = await createServer({ openStore: (onEvent) => createSqliteStore({ path, onEvent }), port: 0 });
  const rights = { namespace: "", agents: "*", scopes: ["read"], expiresAtMs: null } as const;
  token = (await server.tokens.create(rights, "tests")).text;
});
afterAll(async () => {
  await server.close();
  home.remove();
});

it.each([
  [["sessions", "--sort", "key"], "/sessions?sort=key&agent=main"],
  [["show", "notes", "--raw", "--all-branches"], "/sessions/notes/records"],
  [["show", "long", "--raw", "--all-branches", "--after-seq", "30"], "/sessions/long/records?after=30"],
  [["search", "harbour"], "/search?q=harbour&agent=main"],
  [["search", "quay", "--limit", "3"], "/search?q=quay&agent=main&limit=3"],
  [["checkpoints", "long"], "/sessions/long/checkpoints"],
  [["explain", "talk"], "/sessions/talk/calls"],
  [["context", "notes"], "/sessions/notes/context"],
  [["context", "long", "--provider", "anthropic"], "/sessions/long/context?provider=anthropic"],
])("what %j prints, GET %s answers, with more fields", async (args, path) => {
  const printed = objects((await runHere(home.path, [...args, "--json"])).stdout);
  const headers = { authorization: `Bearer ${token}`, accept: "application/x-ndjson" };
  const text = await (await fetch(`${server.url}/api/v1${path}`, { headers })).text();
  const answered = objects(text.endsWith("\n") ? text : `${text}\n`);
  expect(printed.length).toBeGreaterThan(0);
  expect(answered).toHaveLength(printed.length);
  expect(answered).toMatchObject(printed);
});
