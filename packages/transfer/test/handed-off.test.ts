import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSession, sessionRef, type SessionState, type SessionStore } from "@throughline/core";
import { listSessions } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { handOff, type HandOffTarget } from "../src/hand-off.ts";
import { importPaths } from "../src/import-paths.ts";
import type { ImportSource } from "../src/import-types.ts";
import { fixtureFolder } from "./fixture-folder.ts";

type Fields = Record<string, unknown>;

/** What a program writes when a person continues: the question and the answer, behind the last line. */
const continued: Readonly<Record<"claude-code" | "codex" | "gemini" | "pi", (lines: readonly Fields[]) => Fields[]>> = {
  "claude-code": (lines) => {
    const last = lines.findLast(({ uuid }) => typeof uuid === "string") ?? {};
    const line = (type: string, uuid: string, parentUuid: unknown, content: unknown): Fields => ({
      parentUuid,
      isSidechain: false,
      userType: "external",
      cwd: "/srv/app",
      sessionId: last["sessionId"],
      version: "2.1.0",
      type,
      uuid,
      timestamp: "2026-11-30T12:00:00.000Z",
      message: { role: type, content },
    });
    const [one, two] = ["5e0b1b5e-0000-4000-8000-000000000001", "5e0b1b5e-0000-4000-8000-000000000002"];
    return [
      line("user", one, last["uuid"], "and the harbor?"),
      line("assistant", two, one, [{ type: "text", text: "It is open." }]),
    ];
  },
  codex: () =>
    [
      ["user", [{ type: "input_text", text: "and the harbor?" }]],
      ["assistant", [{ type: "output_text", text: "It is open." }]],
    ].map(([role, content]) => ({
      timestamp: "2026-11-30T12:00:00.000Z",
      type: "response_item",
      payload: { type: "message", role, content },
    })),
  gemini: () =>
    [
      ["user", "and the harbor?"],
      ["gemini", "It is open."],
    ].map(([type, content], at) => ({ id: `new-${at}`, timestamp: "2026-11-30T12:00:00.000Z", type, content })),
  pi: (lines) => {
    const line = (id: string, parentId: unknown, message: Fields): Fields => ({
      type: "message",
      id,
      parentId,
      timestamp: "2026-11-30T12:00:00.000Z",
      message,
    });
    return [
      line("new-1", lines.at(-1)?.["id"], { role: "user", content: "and the harbor?" }),
      line("new-2", "new-1", {
        role: "assistant",
        content: [{ type: "text", text: "It is open." }],
        stopReason: "stop",
      }),
    ];
  },
};

const stores: readonly [string, (path: string) => SessionStore][] = [
  ["sqlite", (path) => createSqliteStore({ path: join(path, "sessions.db") })],
  ["jsonl", (path) => createJsonlStore({ root: join(path, "store"), create: true })],
];

const cases = stores.flatMap(([name, open]) =>
  (["claude-code", "codex", "gemini", "pi"] as const).map((to) => [name, to, open] as const),
);

const ref = sessionRef({ key: "notes" });

async function talk(store: SessionStore): Promise<void> {
  await openSession(store, ref, { entry: { cwd: "/srv/app", title: "The lamps", titleBy: "rules" } });
  const content = [{ type: "text", text: "On the shelf." }];
  await store.append(ref, [
    { type: "message", message: { role: "user", content: "where are the lamps?" } },
    { type: "message", message: { role: "assistant", content, stopReason: "stop" } },
  ]);
}

function written(path: string): Fields[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Fields);
}

function add(path: string, lines: readonly Fields[]): void {
  appendFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

async function all(store: SessionStore): Promise<readonly SessionState[]> {
  return Array.fromAsync(listSessions(store, { state: "any", sort: "key" }));
}

async function textsOf(store: SessionStore, key: string): Promise<readonly string[]> {
  const records = (await Array.fromAsync(store.read(sessionRef({ key })))).flatMap((page) => page.records);
  return records.flatMap(({ record }) => {
    const { content } = (record["message"] ?? {}) as { content?: unknown };
    const [block] = Array.isArray(content) ? (content as { text?: string }[]) : [];
    return typeof content === "string" ? [content] : block?.text === undefined ? [] : [block.text];
  });
}

async function handedOff(store: SessionStore, to: HandOffTarget, home: string): Promise<string> {
  const environment = {};
  return (await handOff(store, ref, { to, environment, userHome: home, workingDirectory: "/srv/app" })).path;
}

async function imported(store: SessionStore, path: string): Promise<ImportSource | undefined> {
  const [source] = await Array.fromAsync(importPaths(store, [path]));
  return source;
}

describe.each(cases)("in a %s store, a session that was handed off to %s", (_name, to, open) => {
  const key = `notes-${to}`;

  it("comes back as one fork that takes what was added, and grows with the file", async () => {
    using folder = fixtureFolder();
    await using store = open(folder.path);
    await talk(store);
    const path = await handedOff(store, to, folder.path);
    expect(await imported(store, path)).toMatchObject({ state: "skipped", error: null });
    const lines = continued[to](written(path));
    add(path, lines.slice(0, 1));
    expect(await imported(store, path)).toMatchObject({ state: "imported", key, records: 1, lost: [] });
    add(path, lines.slice(1));
    expect(await imported(store, path)).toMatchObject({ state: "grown", key, records: 1, lost: [] });
    expect(await imported(store, path)).toMatchObject({ state: "unchanged", key });
    const sessions = await all(store);
    expect(sessions.map((state) => state.ref.key)).toEqual(["notes", key]);
    const texts = ["where are the lamps?", "On the shelf.", "and the harbor?", "It is open."];
    expect(await textsOf(store, key)).toEqual(texts);
    expect(await textsOf(store, "notes")).toEqual(texts.slice(0, 2));
    const [, fork] = sessions;
    expect(fork?.entry).toMatchObject({ cwd: "/srv/app", forkedFrom: { key: "notes" } });
    expect(fork?.entry.title).toMatch(/^The lamps \(.+\)$/);
    // The records are one chain: a program that continues the fork gets all of it.
    const records = (await Array.fromAsync(store.read(sessionRef({ key })))).flatMap((page) => page.records);
    const chained = records.filter(({ record }) => record.type === "message");
    expect(chained.slice(1).map(({ parentId }) => parentId)).toEqual(chained.slice(0, -1).map(({ id }) => id));
    expect(fork?.head.headId).toBe(chained.at(-1)?.id);
  });
});

describe("a session that was handed off", () => {
  it("and continued here gets the program's records behind what was handed off, not behind its own", async () => {
    using folder = fixtureFolder();
    await using store = createSqliteStore({ path: join(folder.path, "sessions.db") });
    await talk(store);
    const path = await handedOff(store, "claude-code", folder.path);
    await store.append(ref, [{ type: "message", message: { role: "user", content: "only here" } }]);
    add(path, continued["claude-code"](written(path)));
    await imported(store, path);
    expect(await textsOf(store, "notes-claude-code")).not.toContain("only here");
    expect(await textsOf(store, "notes")).toContain("only here");
  });

  it("is forked once when an import was killed behind the fork", async () => {
    using folder = fixtureFolder();
    await using store = createSqliteStore({ path: join(folder.path, "sessions.db") });
    await talk(store);
    const path = await handedOff(store, "claude-code", folder.path);
    add(path, continued["claude-code"](written(path)));
    const { sessionId } = written(path)[0] as { sessionId: string };
    await store.fork?.fork(ref, sessionRef({ key: "notes-claude-code" }), { sessionId, atSeq: 2 });
    expect(await imported(store, path)).toMatchObject({ state: "imported", key: "notes-claude-code" });
    expect((await all(store)).length).toBe(2);
    expect((await textsOf(store, "notes-claude-code")).length).toBe(4);
  });

  it("and written anew by the program is imported as it is", async () => {
    using folder = fixtureFolder();
    await using store = createSqliteStore({ path: join(folder.path, "sessions.db") });
    await talk(store);
    const path = await handedOff(store, "claude-code", folder.path);
    const lines = written(path).map((line) => ({ ...line, gitBranch: "main" }));
    writeFileSync(
      path,
      [...lines, ...continued["claude-code"](lines)].map((line) => `${JSON.stringify(line)}\n`).join(""),
    );
    const source = await imported(store, path);
    expect(source).toMatchObject({ state: "imported", lost: [] });
    expect(await textsOf(store, source?.key ?? "")).toContain("It is open.");
  });

  it("stays away when its fork was purged", async () => {
    using folder = fixtureFolder();
    await using store = createSqliteStore({ path: join(folder.path, "sessions.db") });
    await talk(store);
    const path = await handedOff(store, "claude-code", folder.path);
    const lines = continued["claude-code"](written(path));
    add(path, lines.slice(0, 1));
    await imported(store, path);
    await store.remove(sessionRef({ key: "notes-claude-code" }), { purge: true });
    add(path, lines.slice(1));
    expect(await imported(store, path)).toMatchObject({ state: "skipped" });
    expect((await all(store)).map((state) => state.ref.key)).toEqual(["notes"]);
  });
});
