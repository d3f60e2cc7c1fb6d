import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { type AppendDraft, sessionRef, type SessionStore, type StoredRecord } from "../../packages/core/src/index.ts";
import { buildContext } from "../../packages/history/src/index.ts";
import { conformanceCases } from "../../packages/store-conformance/src/conformance-cases.ts";
import { runConformance } from "../../packages/store-conformance/src/index.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { exportToFile } from "../../packages/transfer/src/export-files.ts";
import { importPaths } from "../../packages/transfer/src/index.ts";
import { makeQuickFolder } from "../../packages/store-jsonl/test/temporary-folder.ts";
import { repositoryRoot } from "../find-files.ts";
import { testSize } from "../test-size.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "throughline-both-"));
  folders.push(folder);
  return folder;
}

const stores: readonly (readonly [string, (folder: string) => SessionStore])[] = [
  ["JSON Lines", (folder) => createJsonlStore({ root: join(folder, "store") })],
  ["SQLite", (folder) => createSqliteStore({ path: join(folder, "sessions.db") })],
];

describe("the stores in files and in SQLite", () => {
  it(
    "pass the same cases of the one suite, those apart that take long [STO-02, C13]",
    { timeout: 180_000 },
    async () => {
      // What takes long and what needs faults or other abilities runs with each store's own tests.
      const quick = conformanceCases.filter(
        ({ id, needs = [] }) =>
          needs.length === 0 && !/^(?:model|limits|search|redacted-texts\/search|idempotency\/remembered)/.test(id),
      );
      const cases = testSize({ short: quick.filter((_, at) => at % 3 === 0), long: quick });
      const passed: (readonly string[])[] = [];
      for (const [, open] of stores) {
        const results = await runConformance({
          cases,
          open: async () => {
            const folder = makeQuickFolder();
            folders.push(folder);
            const store = open(folder);
            return { store, dispose: () => store.close() };
          },
        });
        expect(results.filter(({ error }) => error !== null)).toEqual([]);
        passed.push(results.filter((result) => result.passed).map(({ id }) => id));
      }
      const [files = [], database = []] = passed;
      expect(files).toEqual(database);
      expect(files.length).toBeGreaterThan(testSize({ short: 30, long: 60 }));
    },
  );
});

describe("the view of sessions of a SQLite store", () => {
  it("has the sessions of an import, which keeps nothing else", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, "pi.jsonl"), oldFiles[2]?.[1] ?? "");
    const path = join(folder, "sessions.db");
    for (const namespace of ["", "team"]) {
      await using store = createSqliteStore({ path });
      for await (const { error } of importPaths(store, [join(folder, "pi.jsonl")], { namespace }))
        expect(error).toBeNull();
    }
    const database = new DatabaseSync(path, { readOnly: true });
    const rows = (table: string): number =>
      Number(database.prepare(`SELECT count(*) AS number FROM ${table}`).get()?.["number"]);
    expect([rows("sessions"), rows("store_sessions")]).toEqual([2, 2]);
    database.close();
  });
});

/** Files as pi has written them over time. */
const oldFiles: readonly (readonly [string, string])[] = [
  ["version 1", fileOf(1, { firstKeptEntryIndex: 3 })],
  ["version 2", fileOf(2, { firstKeptEntryId: "r3" })],
  ["version 3", fileOf(3, { firstKeptEntryId: "r3" })],
];

function fileOf(version: number, kept: Readonly<Record<string, unknown>>): string {
  const timestamp = "2026-02-01T16:10:51.000Z";
  const said = [
    { role: "user", content: "one", timestamp: 1 },
    {
      role: "assistant",
      content: [{ type: "text", text: "two" }],
      api: "a",
      provider: "p",
      model: "m",
      stopReason: "stop",
      timestamp: 2,
    },
    { role: "user", content: [{ type: "text", text: "three" }], timestamp: 3 },
    {
      role: "assistant",
      content: [{ type: "toolCall", id: "c", name: "read", arguments: { path: "x" } }],
      api: "a",
      provider: "p",
      model: "m",
      stopReason: "toolUse",
      timestamp: 4,
    },
    {
      role: "toolResult",
      toolCallId: "c",
      toolName: "read",
      content: [{ type: "text", text: "y" }],
      isError: false,
      timestamp: 5,
    },
  ];
  const rows: Readonly<Record<string, unknown>>[] = said.map((message) => ({ type: "message", timestamp, message }));
  rows.push({ type: "compaction", timestamp, summary: "what was said", tokensBefore: 9, ...kept });
  rows.push({
    type: "message",
    timestamp,
    message: {
      role: version < 3 ? "hookMessage" : "custom",
      customType: "x",
      content: "six",
      display: true,
      timestamp: 6,
    },
  });
  rows.push({ type: "message", timestamp, message: { role: "user", content: "seven", timestamp: 7 } });
  const header = {
    type: "session",
    ...(version === 1 ? {} : { version }),
    id: "0b83cd1e-54ce-4a39-9089-188d2669ead4",
    timestamp,
    cwd: "/",
  };
  const lines = rows.map((row, at) =>
    version === 1 ? row : { ...row, id: `r${at + 1}`, parentId: at === 0 ? null : `r${at}` },
  );
  return [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join("");
}

interface PiSession {
  readonly buildSessionContext: () => {
    readonly messages: readonly { readonly role: string; readonly content?: unknown }[];
  };
  readonly getBranch: () => readonly { readonly id: string }[];
}

const piPath = join(
  repositoryRoot,
  "packages/store-jsonl/node_modules/@mariozechner/pi-coding-agent/dist/core/session-manager.js",
);
const pi = (await import(pathToFileURL(piPath).href).catch(() => null)) as {
  readonly SessionManager: { open(path: string): PiSession };
} | null;
const ref = sessionRef({ key: "agent:main:main" });

function contextOf(path: string): readonly unknown[] {
  return pi?.SessionManager.open(path).buildSessionContext().messages ?? [];
}

function user(text: string): AppendDraft {
  return { type: "message", message: { role: "user", content: text, timestamp: 1 } };
}

function assistant(text: string): AppendDraft {
  const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: {} };
  const said = { role: "assistant", content: [{ type: "text", text }], api: "a", provider: "p", model: "m", usage };
  return { type: "message", message: { ...said, stopReason: "stop", timestamp: 1 } };
}

/** Conversations as our parts leave them: what was appended, and what pi is to find in it. */
const conversations: readonly (readonly [string, (store: SessionStore) => Promise<unknown>])[] = [
  ["plain turns", (store) => store.append(ref, [user("one"), assistant("two"), user("three"), assistant("four")])],
  [
    "a compaction",
    async (store) => {
      const { records } = await store.append(ref, [user("one"), assistant("two"), user("three"), assistant("four")]);
      const firstKeptEntryId = records[2]?.id ?? "";
      await store.append(ref, [{ type: "compaction", summary: "what was said", firstKeptEntryId, tokensBefore: 10 }]);
      await store.append(ref, [user("five"), assistant("six")]);
    },
  ],
  [
    "a rewind and another way on",
    async (store) => {
      const { records } = await store.append(ref, [user("one"), assistant("two"), user("wrong"), assistant("no")]);
      const leaf = { type: "leaf", targetId: records[1]?.id ?? "" };
      await store.append(ref, [leaf], { rewindTo: records[1]?.id ?? null });
      await store.append(ref, [user("right"), assistant("yes")]);
    },
  ],
  [
    "side records between and behind",
    async (store) => {
      const { records } = await store.append(ref, [
        user("one"),
        { type: "label", targetId: "x", label: "y" },
        assistant("two"),
      ]);
      await store.append(ref, [
        { type: "session_info", name: "named" },
        { type: "label", targetId: records[0]?.id ?? "", label: "z" },
      ]);
    },
  ],
];

describe.skipIf(pi === null)(pi === null ? "pi cannot be loaded here" : "pi 0.73.1", () => {
  it.for(conversations)(
    "finds the context we find in %s, and every line follows its head [C50, DEF-05]",
    async ([, work]) => {
      const root = newFolder();
      const store = createJsonlStore({ root });
      await store.save(ref, { sessionId: "s1" }, { ifRevision: null });
      await work(store);
      const records: StoredRecord[] = [];
      for await (const page of store.read(ref)) records.push(...page.records);
      const { head } = (await store.load(ref)) ?? {};
      await store.close();
      const path = join(root, "agents/main/sessions/s1.jsonl");
      for (const line of readFileSync(path, "utf8").trimEnd().split("\n").slice(1))
        expect(JSON.parse(line)).toMatchObject({
          id: expect.any(String) as string,
          type: expect.any(String) as string,
        });
      expect(records.every(({ record }) => Object.hasOwn(record, "parentId"))).toBe(true);
      const ours = buildContext(records, { headId: head?.headId ?? null });
      const theirs = pi?.SessionManager.open(path).buildSessionContext().messages ?? [];
      const texts = (all: readonly { readonly role: string; readonly content?: unknown }[]): readonly string[] =>
        all
          .filter(({ role }) => role === "user" || role === "assistant")
          .map(({ role, content }) => `${role} ${typeof content === "string" ? content : JSON.stringify(content)}`);
      expect(theirs.length).toBe(ours.recordsInContext);
      const spoken = records
        .filter(({ record }) => record.type === "message")
        .map(({ record }) => record["message"] as { role: string; content: unknown });
      // Every message pi sends is one of ours, in our order.
      const all = texts(spoken);
      let place = -1;
      for (const text of texts(theirs)) {
        const next = all.indexOf(text, place + 1);
        expect(next).toBeGreaterThan(place);
        place = next;
      }
    },
  );

  it.for(conversations)("opens the export of %s with the same context, whatever store it was in", async ([, work]) => {
    const contexts: unknown[] = [];
    for (const [, open] of stores) {
      const folder = newFolder();
      const store = open(folder);
      await store.save(ref, { sessionId: "s1" }, { ifRevision: null });
      await work(store);
      for (const to of ["pi", "openclaw"] as const) {
        const path = join(folder, `${to}.jsonl`);
        await exportToFile(store, ref, path, { to });
        contexts.push(contextOf(path));
      }
      await store.close();
      const own = join(folder, "store/agents/main/sessions/s1.jsonl");
      if (existsSync(own)) contexts.unshift(contextOf(own));
    }
    expect(contexts.length).toBe(5);
    expect((contexts[0] as readonly unknown[]).length).toBeGreaterThan(1);
    // The two stores were written one after the other.
    const timeless = (context: unknown): string => JSON.stringify(context).replaceAll(/"timestamp":\d+/g, "");
    for (const context of contexts) expect(timeless(context)).toBe(timeless(contexts[0]));
  });

  it.for(oldFiles)("finds in the export of %s what it finds in the file itself", async ([, text]) => {
    const folder = newFolder();
    const source = join(folder, "0b83cd1e-54ce-4a39-9089-188d2669ead4.jsonl");
    writeFileSync(source, text);
    for (const [name, open] of stores) {
      const store = open(newFolder());
      const [imported] = await Array.fromAsync(importPaths(store, [source]));
      const { key, agentId } = imported ?? {};
      const at = { namespace: "", agentId: agentId ?? "", key: key ?? "" };
      for (const to of ["pi", "openclaw", "jsonl"] as const) {
        const path = join(folder, `${name}-${to}.jsonl`);
        await exportToFile(store, at, path, { to });
        // pi raises an old file where it lies, and so gets a copy.
        const copy = join(folder, `${name}-${to}-copy.jsonl`);
        copyFileSync(source, copy);
        const theirs = contextOf(copy);
        expect(theirs.length).toBeGreaterThan(2);
        expect(contextOf(path)).toEqual(theirs);
      }
      await store.close();
    }
  });
});
