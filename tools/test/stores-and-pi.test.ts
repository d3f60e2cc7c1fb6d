import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { sessionRef, type AppendDraft, type SessionStore, type StoredRecord } from "../../packages/core/src/index.ts";
import { buildContext } from "../../packages/history/src/index.ts";
import { conformanceCases, runConformance } from "../../packages/store-conformance/src/index.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { repositoryRoot } from "../find-files.ts";

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
      const cases = conformanceCases.filter(
        ({ id, needs = [] }) => needs.length === 0 && !/^(?:model|limits|search|idempotency\/remembered)/.test(id),
      );
      const passed: (readonly string[])[] = [];
      for (const [, open] of stores) {
        const results = await runConformance({
          cases,
          open: async () => {
            const handles = [open(newFolder())];
            return { store: handles[0]!, dispose: () => handles[0]!.close() };
          },
          model: () => createMemoryStore(),
        });
        expect(results.filter(({ error }) => error !== null)).toEqual([]);
        passed.push(results.filter((result) => result.passed).map(({ id }) => id));
      }
      const [files = [], database = []] = passed;
      expect(files).toEqual(database);
      expect(files.length).toBeGreaterThan(60);
    },
  );
});

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
});
