import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { forkSession } from "../../packages/core/src/fork-session.ts";
import { resetSession } from "../../packages/core/src/open-session.ts";
import type { SessionRef, SessionStore } from "../../packages/core/src/index.ts";
import { loadEntryBlobs } from "../../packages/core/src/entry-blobs.ts";
import { systemRandom } from "../../packages/core/src/node/system-ports.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { createPostgresStore } from "../../packages/store-postgres/src/index.ts";
import { startPostgres, type PostgresServer } from "../../packages/store-postgres/test/postgres-server.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { copySessions, exportSession, importPaths } from "../../packages/transfer/src/index.ts";

const ref = (name: string): SessionRef => ({ namespace: "", agentId: "main", key: `agent:main:direct:${name}` });
const oldId = "0b83cd1e-54ce-4a39-9089-188d2669ead4";
const blobs = { skillsSnapshot: { prompt: "é\u2028 ".repeat(2000) }, systemPromptReport: { source: "run", n: 1.5e-7 } };

/** Lines that a copy which parses and writes anew would change. */
const oddLines: readonly Buffer[] = [
  `{"type":"session","version":3,"id":"${oldId}","timestamp":"2026-02-01T16:10:50.414Z","cwd":"/home/u"}`,
  '{"type":"message","id":"a","parentId":null,"timestamp":"2026-02-01T16:10:51.000Z","message":{"role":"user","content":"\\u00e9 \\/ \u2028"}}',
  '{ "type" : "message", "id":"b","parentId":"a","timestamp":"2026-02-01T16:10:52.000Z","n":[1.0,1e3,-0,90071992547409931],"message":{"role":"user","content":"x","content":"y"}}\r',
  "",
  '{"broken',
  '{"type":"custom","customType":"x","id":"lone","parentId":"b","timestamp":"2026-02-01T16:10:53.000Z","data":"\\ud800"}',
  '{"type":"message","id":"a","parentId":"b","timestamp":"2026-02-01T16:10:54.000Z","message":{"role":"user","content":"the same id"}}',
].map((line) => Buffer.from(line));
const oddFile = Buffer.concat([
  ...oddLines.flatMap((line) => [line, Buffer.from("\n")]),
  Buffer.from([0xff, 0x00, 0x0a]),
  Buffer.from('{"no line feed":1}'),
]);

const user = (content: string): { readonly type: "message"; readonly message: unknown } => ({
  type: "message",
  message: { role: "user", content },
});

/** Everything a session can be: imported, archived, forked, rewound, with a window, with a payload that lies aside. */
async function fill(store: SessionStore, folder: string): Promise<void> {
  const sessions = join(folder, "state/agents/main/sessions");
  mkdirSync(sessions, { recursive: true });
  const entry = { sessionId: oldId, updatedAt: 1_770_000_000_000, label: "old", strange: { a: [null] }, ...blobs };
  writeFileSync(join(sessions, "sessions.json"), JSON.stringify({ [ref("imported").key]: entry }));
  writeFileSync(join(sessions, `${oldId}.jsonl`), oddFile);
  await Array.fromAsync(importPaths(store, [join(folder, "state")]));
  const main = ref("main");
  await store.save(main, { sessionId: "first", sendPolicy: "deny" }, { ifRevision: null });
  const { records } = await store.append(main, [user("one"), user("x".repeat(400_000)), user("three")]);
  await forkSession(store, main, ref("fork"), { sessionId: "forked", atSeq: 2 });
  await store.append(ref("fork"), [user("another way")]);
  await store.append(main, [], { rewindTo: records[1]?.id ?? null });
  await resetSession(store, main, { random: systemRandom, keep: () => ({ label: "kept" }) });
  await store.append(main, [user("four"), user("five")], { windowFromSeq: 2, entry: { totalTokens: 7 } });
  await store.save(ref("empty"), { sessionId: "nothing" }, { ifRevision: null });
}

/** All of a store, but for what is its own: revisions, and when it made and stored what. */
async function picture(store: SessionStore): Promise<readonly unknown[]> {
  const { sessions } = await store.list({ state: "any", sort: "key", limit: 100 });
  const shown = sessions.map(async ({ ref: at, sessionId, archived, entry, head, updatedAtMs }) => {
    const records: unknown[] = [];
    for await (const page of store.read(at, { payload: "source" })) {
      for (const { seq, id, source, record, side, isSourceCanonical } of page.records)
        records.push([
          seq,
          id,
          typeof source === "string" ? source : Buffer.from(source).toString("hex"),
          record,
          side,
          isSourceCanonical,
        ]);
    }
    return { at, sessionId, archived, entry, head, updatedAtMs, records };
  });
  return Promise.all(shown);
}

let folder = "";
let server: PostgresServer | { readonly unavailable: string } = { unavailable: "not started" };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "throughline-copies-"));
  server = await startPostgres();
}, 60_000);

afterAll(async () => {
  if ("stop" in server) await server.stop();
  rmSync(folder, { recursive: true });
});

describe("a copy through every store", () => {
  it("comes back with the same sources, entries, archives and forks [MIG-10, C13]", async (context) => {
    if ("unavailable" in server) return context.skip(`needs PostgreSQL: ${server.unavailable}`);
    await using files = createJsonlStore({ root: join(folder, "first"), create: true });
    await fill(files, folder);
    const expected = await picture(files);
    expect(expected.length).toBe(5);
    await using database = createSqliteStore({ path: join(folder, "sessions.db") });
    await using remote = createPostgresStore({ url: server.url });
    await using last = createJsonlStore({ root: join(folder, "last"), create: true });
    const path: readonly SessionStore[] = [files, database, remote, last];
    for (const [index, to] of path.entries()) {
      const from = path[index - 1];
      if (from === undefined) continue;
      const states = (await Array.fromAsync(copySessions(from, to))).map(({ state }) => state);
      expect(states).toEqual(Array.from({ length: 5 }, () => "imported"));
      expect(await picture(to)).toEqual(expected);
      const state = await to.load(ref("imported"));
      expect(state === null ? null : await loadEntryBlobs(to, state)).toEqual(blobs);
      const bytes = Buffer.concat(await Array.fromAsync(exportSession(to, ref("imported"), { to: "jsonl" })));
      expect(bytes.equals(oddFile)).toBe(true);
      // Nothing is copied twice.
      const again = (await Array.fromAsync(copySessions(from, to))).map((each) => [each.state, each.records]);
      expect(again).toEqual(Array.from({ length: 5 }, () => ["unchanged", 0]));
    }
    const source = join(folder, "state/agents/main/sessions", `${oldId}.jsonl`);
    expect(readFileSync(source).equals(oddFile)).toBe(true);
  });
});
