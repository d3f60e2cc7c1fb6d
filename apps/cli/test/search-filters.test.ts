import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sessionRef } from "@throughline/core";
import type { SessionState, SessionStore } from "@throughline/core";
import { searchHits } from "@throughline/core/internal/node";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { kinds } from "./json-shapes.ts";
import { objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

const { signal } = new AbortController();

describe.each(["memory", "SQLite"])("searching a store of %s with filters", (kind) => {
  const directory = temporaryDirectory();
  afterAll(() => directory.remove());
  let number = 0;
  const createStore = (): SessionStore =>
    kind === "memory" ? createMemoryStore() : createSqliteStore({ path: join(directory.path, `${++number}.db`) });
  const say = (role: string, content: unknown, more: object = {}): { type: string; message: unknown } => ({
    type: "message",
    message: { role, content, ...more },
  });
  const write = (path: string): { type: string; message: unknown } =>
    say("assistant", [{ type: "toolCall", id: "c", name: "write", arguments: { path, content: "lamp" } }]);
  const fill = async (store: SessionStore, id: string, drafts: readonly ReturnType<typeof say>[]): Promise<void> => {
    for (let at = 0; at < drafts.length; at += 1000)
      await store.append(sessionRef({ key: `agent:main:${id}` }), drafts.slice(at, at + 1000));
  };
  const found = async (store: SessionStore, query: object): Promise<{ hits: string[]; isCut: boolean }> => {
    let isCut = false;
    const { hits } = searchHits(store, {
      text: "",
      namespace: "",
      agentId: null,
      state: "active",
      session: null,
      limit: 50,
      isScan: false,
      signal,
      onCut: () => (isCut = true),
      ...query,
    });
    return { hits: (await Array.fromAsync(hits)).map(({ sessionId, seq }) => `${sessionId} ${seq}`), isCut };
  };
  const isOfApp = ({ entry }: SessionState): boolean => entry.cwd === "/app";

  it("finds the records of some sessions although the best thousand hits are of others", async () => {
    await using store = createStore();
    const sessions = [
      ["app", "/app", 3],
      ["other", "/other", 1100],
    ] as const;
    for (const [id, cwd, count] of sessions) {
      const ref = sessionRef({ key: `agent:main:${id}` });
      await store.save(ref, { sessionId: id, cwd }, { ifRevision: null });
      await fill(
        store,
        id,
        Array.from({ length: count }, (_, at) => say("user", `lamp ${"lamp ".repeat(id === "app" ? 0 : 3)}${at}`)),
      );
    }
    const { hits, isCut } = await found(store, { text: "lamp", isWanted: isOfApp });
    expect(hits.toSorted()).toEqual(["app 1", "app 2", "app 3"]);
    expect(isCut).toBe(false);
    expect((await found(store, { text: "lamp", isWanted: isOfApp, isScan: true })).hits).toHaveLength(3);
    // Only an index leaves out hits.
    expect((await found(store, { text: "lamp", isError: true })).isCut).toBe(kind === "SQLite");
  });

  it("finds errors and written files by index, by scan, and without words the newest first", async () => {
    await using store = createStore();
    const ref = sessionRef({ key: "agent:main:a" });
    await store.save(ref, { sessionId: "a", cwd: "/app" }, { ifRevision: null });
    await store.append(ref, [
      say("user", "the lamp"),
      write("src/lamp.ts"),
      say("toolResult", "the lamp is broken", { toolCallId: "c", toolName: "write", isError: true }),
      write("src/other.ts"),
      say("user", "src/lamp.ts is only named"),
    ]);
    for (const isScan of [false, true]) {
      expect((await found(store, { text: "lamp", isError: true, isScan })).hits).toEqual(["a 3"]);
      expect((await found(store, { file: "lamp.ts", isScan })).hits).toEqual(["a 2"]);
      expect((await found(store, { file: "/app/src/lamp.ts", isScan })).hits).toEqual(["a 2"]);
      expect((await found(store, { file: "mp.ts", isScan })).hits).toEqual([]);
      expect((await found(store, { isError: true, isScan })).hits).toEqual(["a 3"]);
      expect((await found(store, { isWanted: isOfApp, isScan })).hits).toEqual(["a 5", "a 4", "a 3", "a 2", "a 1"]);
      expect((await found(store, { isWanted: () => false, isScan })).hits).toEqual([]);
    }
  });

  it("reads at most 2,000 records of a session without words, the newest, and says so", async () => {
    await using store = createStore();
    const ref = sessionRef({ key: "agent:main:a" });
    await store.save(ref, { sessionId: "a" }, { ifRevision: null });
    await fill(store, "a", [
      say("toolResult", "old", { toolCallId: "c", toolName: "t", isError: true }),
      ...Array.from({ length: 2000 }, (_, at) => say("user", `lamp ${at}`)),
    ]);
    expect(await found(store, { isError: true })).toEqual({ hits: [], isCut: true });
    expect(await found(store, { isError: true, isScan: true })).toEqual({ hits: ["a 1"], isCut: false });
  });
});

describe("search with filters, for people", () => {
  const directory = temporaryDirectory();
  afterAll(() => directory.remove());
  const run = async (
    ...args: readonly string[]
  ): Promise<{ readonly rows: readonly string[]; readonly stderr: string; readonly code: number | null }> => {
    const { stdout, stderr, code } = await runHere(directory.path, args, { isTerminal: true });
    // oxlint-disable-next-line no-control-regex -- styles are taken out to compare the rows
    return { code, stderr, rows: stdout.replaceAll(/\u001b\[[\d;]*m/g, "").split("\n") };
  };
  const names = (rows: readonly string[]): readonly string[] =>
    rows.flatMap((row) => /^ {5}(agent:\S+)$/.exec(row)?.[1] ?? []);
  const write = {
    type: "message",
    message: {
      role: "assistant",
      content: [{ type: "toolCall", id: "c1", name: "write", arguments: { path: "src/pier.ts", content: "" } }],
    },
  };
  const failed = {
    type: "message",
    message: { role: "toolResult", toolCallId: "c1", toolName: "write", content: "the disk is full", isError: true },
  };
  beforeAll(async () => {
    for (const folder of ["app/web", "apple"]) mkdirSync(join(directory.path, folder), { recursive: true });
    symlinkSync(join(directory.path, "app"), join(directory.path, "link"));
    const at = (folder: string): { readonly cwd: string } => ({ cwd: join(directory.path, folder) });
    await seed(directory.path, [
      {
        key: "agent:main:app",
        entry: { ...at("app"), importedFrom: { format: "codex" } },
        drafts: [user("a lamp"), write, failed],
      },
      {
        key: "agent:main:web",
        entry: { ...at("link/web"), client: "claude-code" },
        drafts: [user("a lamp on the web")],
      },
      { key: "agent:main:apple", entry: at("apple"), drafts: [user("a lamp of apples")] },
      { key: "agent:main:nowhere", drafts: [user("a lamp without a folder"), user("another lamp")] },
    ]);
  });

  it.each([
    [
      ["lamp", "--folder", "app"],
      ["web", "app"],
    ],
    [
      ["lamp", "--folder", "link"],
      ["web", "app"],
    ],
    [["lamp", "--folder", "app/web"], ["web"]],
    [["--folder", "apple"], ["apple"]],
    [["--here"], ["apple", "web", "app"]],
    [["lamp", "--program", "Claude Code"], ["web"]],
    [
      ["lamp", "--program", "own"],
      ["nowhere", "apple"],
    ],
    [["--program", "codex", "--role", "user"], ["app"]],
    [["--errors"], ["app"]],
    [["--errors", "--program", "own"], []],
    [["--tool", "write"], ["app"]],
    [["--file", "pier.ts"], ["app"]],
    [["--file", "app/src/pier.ts"], ["app"]],
    [["--file", "./app/src/pier.ts"], ["app"]],
    [["--file", "./src/pier.ts"], []],
    [["disk", "--errors", "--file", "pier.ts"], []],
    [["--until", "2001-01-01"], []],
  ])("search %j finds %j", async (args, found) => {
    const { rows, code } = await run("search", ...args);
    expect(names(rows).toSorted()).toEqual(found.map((key) => `agent:main:${key}`).toSorted());
    expect(code).toBe(0);
    const json = objects((await runHere(directory.path, ["search", ...args, "--json", "--group"])).stdout);
    expect(json.slice(0, -1).map((group) => (group["session"] as { key: string }).key)).toEqual(names(rows));
    for (const group of json.slice(0, -1)) expect(group).toMatchObject({ kind: "hitGroup", isTotalExact: true });
  });

  it("says what helps when filters leave nothing, and refuses a search for nothing", async () => {
    const { stderr } = await run("search", "apples", "--program", "codex");
    expect(stderr).toBe("0 hits.\n  without --program: 1 hit\n");
    const nothing = await run("search");
    expect([nothing.code, nothing.stderr.split("\n")[0]]).toEqual([
      2,
      "error: search needs a word to look for, or a filter such as --file, --errors or --here.",
    ]);
    expect((await run("search", "--here", "--folder", "app")).code).toBe(2);
    expect((await run("search", "lamp", "--group")).code).toBe(2);
    const unknown = await run("search", "lamp", "--program", "cod");
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("--program takes own, or one of")]);
  });

  it("show --files lists the files that a session wrote", async () => {
    const { stdout } = await runHere(directory.path, ["show", "agent:main:app", "--files", "--json"]);
    expect(kinds(stdout)).toEqual(["changedFile", "end"]);
    expect(objects(stdout)[0]).toMatchObject({ path: "src/pier.ts", changes: 1, firstSeq: 2, lastSeq: 2 });
    expect((await run("show", "agent:main:apple", "--files")).stderr).toBe("Its tools wrote no file.\n");
    for (const other of [["--tail", "1"], ["--at", "1"], ["--follow"]])
      expect((await run("show", "agent:main:app", "--files", ...other)).code).toBe(2);
  });

  it("open shows a numbered hit of the last search, of which only places are kept", async () => {
    const { rows } = await run("search", "lamp");
    const numbered = rows.flatMap((row) => / +(\d+) {2}#(\d+) user: (.*)$/.exec(row)?.slice(1) ?? []);
    const [number = "", seq = "", text = ""] = numbered.slice(-3);
    const opened = await run("open", number);
    expect(opened.rows.find((row) => row.startsWith("> "))).toMatch(new RegExp(`^> #${seq} user`));
    expect(opened.rows.join("\n")).toContain(text);
    const folder = join(directory.path, "searches");
    const [name = ""] = readdirSync(folder);
    expect([statSync(folder).mode & 0o777, statSync(join(folder, name)).mode & 0o777]).toEqual([0o700, 0o600]);
    const json = objects((await runHere(directory.path, ["open", number, "--json"])).stdout);
    expect(json.at(-1)).toMatchObject({ kind: "end" });
    const refused = async (...args: readonly string[]): Promise<string> => {
      const { code, stderr } = await run("open", ...args);
      expect(code).toBe(2);
      return stderr.split("\n")[0] ?? "";
    };
    expect(await refused("99")).toBe("error: The last search printed 5 numbers, and 99 is none of them.");
    expect(await refused("lamp")).toBe('error: open takes the number of a hit, not "lamp".');
    expect(await refused("1", "--store", "sqlite:other.db")).toBe(
      "error: The last search of this terminal was in another store or namespace.",
    );
    expect(await refused("1", "--namespace", "other")).toContain("another store or namespace");
    // A search without hits keeps the numbers that are on the screen.
    await run("search", "xyzzy");
    expect((await run("open", number)).code).toBe(0);
    await run("delete", "agent:main:app");
    const gone = await Promise.all(["1", "2", "3", "4", "5"].map((each) => run("open", each)));
    expect(gone.map(({ code }) => code).toSorted()).toEqual([0, 0, 0, 0, 1]);
    expect(gone.find(({ code }) => code === 1)?.stderr).toMatch(
      /error: The session "\S+" of hit \d is not at "agent:main:app" any more/,
    );
    const file = join(folder, name);
    const kept = JSON.parse(readFileSync(file, "utf8")) as { readonly atMs: number };
    writeFileSync(file, JSON.stringify({ ...kept, atMs: kept.atMs - 3_601_000 }));
    expect(await refused(number)).toBe("error: There is no search of this terminal from the last hour.");
    writeFileSync(file, "{");
    expect(await refused(number)).toBe("error: There is no search of this terminal from the last hour.");
  });
});
