import { execFileSync, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type RecordDraft, sessionRef, type SessionStore } from "@throughline/core";
import { resetSession, systemRandom, throughlineDraft } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { faultyFiles } from "./faulty-files.ts";
import { mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const child = bundledWorker(new URL("./many-hands-child.ts", import.meta.url));

function linesOf(root: string): readonly Record<string, unknown>[] {
  const [, ...lines] = readFileSync(transcriptOf(root), "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

function run(...args: readonly string[]): Promise<number | null> {
  const running = spawn(process.execPath, [child, ...args], { stdio: ["ignore", "ignore", "inherit"] });
  return new Promise((resolve) => void running.on("close", resolve));
}

describe("a line of ours", () => {
  it("has an id of the one form, another for each record of a millisecond, and other forms are taken", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    await store.append(
      mainRef,
      Array.from({ length: 1000 }, (_, index) => userDraft(`n${index}`)),
      { durability: "process" },
    );
    const ids = linesOf(root).map(({ id }) => id as string);
    expect(ids.every((id) => /^\d{13}_[0-9a-f]{8}$/.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(1000);
    const millisecond = new Map<string, number>();
    for (const id of ids) millisecond.set(id.slice(0, 13), (millisecond.get(id.slice(0, 13)) ?? 0) + 1);
    expect(Math.max(...millisecond.values())).toBeGreaterThan(1);
    for (const id of ["1706803200000_a1b2", "06856efc"]) await store.append(mainRef, [{ id, ...userDraft(id) }]);
    await store.close();
    const again = createJsonlStore({ root });
    expect((await textsOf(again)).slice(-2)).toEqual(["1706803200000_a1b2", "06856efc"]);
    await again.append(mainRef, [userDraft("behind")]);
    expect(linesOf(root).at(-1)?.["parentId"]).toBe("06856efc");
    await again.close();
  });

  it("is read again as ours whatever window its append stated, and a window that cannot be is refused", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    for (const windowFromSeq of [-1, 0.5, Number.NaN])
      await expect(store.append(mainRef, [userDraft("no")], { windowFromSeq })).rejects.toMatchObject({
        code: "INPUT_INVALID",
      });
    const keyed = { idempotencyKey: "once", windowFromSeq: 0 };
    const first = await store.append(mainRef, [userDraft("once")], keyed);
    await store.close();
    await using again = createJsonlStore({ root });
    expect(await again.append(mainRef, [userDraft("once")], keyed)).toEqual({ ...first, replayed: true });
  });

  it("keeps a source that says what its record says once, and as what it is", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const record = { type: "message", id: "given", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" };
    const source = JSON.stringify({ ...record, message: { role: "user", content: "x" } });
    await store.append(mainRef, [{ source, record: JSON.parse(source) as RecordDraft }]);
    expect(linesOf(root)[0]?.["_tl"]).not.toHaveProperty("source");
    const kept = async (from: SessionStore): Promise<readonly unknown[]> => {
      for await (const { records } of from.read(mainRef, { payload: "source" }))
        return records.map((one) => [one.source, one.isSourceCanonical]);
      return [];
    };
    expect(await kept(store)).toEqual([[source, true]]);
    await store.close();
    await using again = createJsonlStore({ root });
    expect(await kept(again)).toEqual([[source, true]]);
  });

  it("is no header of the file though its type is that of one", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const source = JSON.stringify({ type: "session", id: "a", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" });
    await store.append(mainRef, [{ source }]);
    const codes: string[] = [];
    for await (const { code } of store.maintenance?.verify() ?? []) codes.push(code);
    expect(codes).toEqual([]);
    expect(linesOf(root)).toHaveLength(1);
    await store.close();
  });

  it("says which record it follows, of whatever type it is: the head, or none", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const drafts = [
      userDraft("one"),
      { type: "model_change", provider: "p", modelId: "m" },
      throughlineDraft("note", { kind: "test" }),
      { type: "thinking_level_change", thinkingLevel: "low" },
      { type: "label", targetId: "x", label: "here" },
      { type: "compaction", summary: "s", firstKeptEntryId: "x", tokensBefore: 1 },
      { type: "somebody_elses_type", fields: [1] },
      userDraft("two"),
    ];
    let head: string | null = null;
    for (const draft of drafts) {
      const before: string | null = head;
      const appended = await store.append(mainRef, [draft]);
      expect(linesOf(root).at(-1)).toMatchObject({ type: draft.type, parentId: before });
      head = appended.head.headId;
    }
    expect(linesOf(root).every((line) => Object.hasOwn(line, "parentId") && typeof line["id"] === "string")).toBe(true);
    await store.close();
  });

  it("shows text as itself, for whoever reads the file with cat", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const text = "Grüße, 世界! Привет 👩‍👩‍👧 ∑ é";
    await store.append(mainRef, [userDraft(text)], { entry: { label: text } });
    await store.close();
    const seen = execFileSync("cat", [transcriptOf(root)]).toString();
    expect(seen.split(text).length).toBe(3);
    expect(seen).not.toMatch(/\\u[0-9a-f]{4}/i);
    expect(execFileSync("cat", [join(root, "agents/main/throughline/entries.log")]).toString()).toContain(text);
  });
});

describe("what is listed", () => {
  it("counts messages of users, assistants and tools, and an append writes no index for it", async () => {
    const root = newFolder();
    const faults = faultyFiles();
    const store = await storeWithSession(root, { files: faults.files, sessionsJson: true });
    const message = (role: string): unknown => ({ type: "message", message: { role, content: [], toolCallId: "c" } });
    await store.append(mainRef, [userDraft("one")]);
    const own = join(root, "agents/main");
    const before = [`${own}/throughline/entries.log`, `${own}/sessions/sessions.json`].map(
      (path) => nodeFiles.facts(path)?.sizeBytes ?? null,
    );
    faults.reset();
    for (const role of ["assistant", "toolResult"])
      await store.append(mainRef, [message(role) as never, throughlineDraft("note", { kind: "test" })]);
    await store.append(mainRef, [{ type: "label", targetId: "x", label: "y" }]);
    expect(faults.counts["write"]).toBe(3);
    expect(
      [`${own}/throughline/entries.log`, `${own}/sessions/sessions.json`].map(
        (path) => nodeFiles.facts(path)?.sizeBytes ?? null,
      ),
    ).toEqual(before);
    expect((await store.load(mainRef))?.messageCount).toBe(3);
    expect((await store.list()).sessions[0]?.messageCount).toBe(3);
    await store.close();
    const again = createJsonlStore({ root });
    expect((await again.list()).sessions[0]).toMatchObject({ messageCount: 3, head: { lastSeq: 6 } });
    await again.close();
  });

  it("begins with the session that was active last", async () => {
    const root = newFolder();
    let nowMs = 1_800_000_000_000;
    const clock = { nowMs: () => (nowMs += 1000), sleep: () => Promise.resolve() };
    const open = (): SessionStore => createJsonlStore({ root, clock });
    const keys = async (store: SessionStore): Promise<readonly string[]> =>
      (await store.list()).sessions.map(({ ref }) => ref.key.slice("agent:main:".length));
    const store = open();
    for (const name of ["a", "b", "c"])
      await store.save(sessionRef({ key: `agent:main:${name}` }), { sessionId: name }, { ifRevision: null });
    expect(await keys(store)).toEqual(["c", "b", "a"]);
    await store.append(sessionRef({ key: "agent:main:a" }), [userDraft("now")]);
    expect(await keys(store)).toEqual(["a", "c", "b"]);
    await store.append(sessionRef({ key: "agent:main:b" }), [], { entry: { label: "x", updatedAt: clock.nowMs() } });
    expect(await keys(store)).toEqual(["b", "a", "c"]);
    await store.close();
    const again = open();
    expect(await keys(again)).toEqual(["b", "a", "c"]);
    await again.close();
  });

  it("goes by its key, which remembers the ids it had [C03]", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const second = await resetSession(store, mainRef, { random: systemRandom });
    const third = await resetSession(store, mainRef, { random: systemRandom });
    expect(third.entry.previousSessionIds).toEqual(["s1", second.sessionId]);
    expect(await store.load(mainRef)).toEqual(third);
    const { sessions } = await store.list({ state: "archived" });
    expect(new Set(sessions.map(({ sessionId }) => sessionId))).toEqual(new Set(["s1", second.sessionId]));
    expect((await store.list()).sessions.map(({ sessionId }) => sessionId)).toEqual([third.sessionId]);
    await store.close();
  });
});

describe("several processes and one session", () => {
  it(
    "lose no change of its entry, and a handle that was open all along sees each",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const root = newFolder();
      const store = await storeWithSession(root, { sessionsJson: false });
      expect((await store.load(mainRef))?.entry["count"]).toBeUndefined();
      const runs = Promise.all(["a", "b", "c", "d"].map((name) => run(root, "count", name, "25")));
      const seen: number[] = [];
      let isOver = false;
      void runs.then(() => (isOver = true));
      while (!isOver) {
        seen.push(Number((await store.load(mainRef))?.entry["count"] ?? 0));
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      expect(await runs).toEqual([0, 0, 0, 0]);
      expect((await store.load(mainRef))?.entry["count"]).toBe(100);
      expect(seen).toEqual(seen.toSorted((one, other) => one - other));
      expect(new Set(seen).size).toBeGreaterThan(3);
      await store.close();
    },
  );

  it("read without a lock, while writes wait for whoever holds it [C14]", { tags: ["slow"] }, async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { lockTimeoutMs: 100, sessionsJson: false });
    await store.append(mainRef, [userDraft("one")]);
    const locks = join(root, "agents/main/throughline/locks");
    const program = `
      const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
      const held = ${JSON.stringify(readdirSync(locks))}.map((name) => {
        const database = new DatabaseSync(${JSON.stringify(`${locks}/`)} + name);
        database.exec("PRAGMA journal_mode=MEMORY; BEGIN IMMEDIATE");
        return database;
      });
      process.stdout.write("held");
      setInterval(() => held.length, 1000);`;
    const holder = spawn(process.execPath, ["--no-warnings", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await new Promise((resolve) => holder.stdout.once("data", resolve));
      expect(await textsOf(store)).toEqual(["one"]);
      expect((await store.load(mainRef))?.messageCount).toBe(1);
      expect((await store.list()).sessions.length).toBe(1);
      await using fresh = createJsonlStore({ root, sessionsJson: false });
      expect(await textsOf(fresh)).toEqual(["one"]);
      await expect(store.append(mainRef, [userDraft("two")])).rejects.toMatchObject({ code: "STORE_LOCKED" });
      await expect(store.append(mainRef, [], { entry: { label: "x" } })).rejects.toMatchObject({
        code: "STORE_LOCKED",
      });
    } finally {
      holder.kill("SIGKILL");
    }
    await store.append(mainRef, [userDraft("two")]);
    expect(await textsOf(store)).toEqual(["one", "two"]);
    await store.close();
  });
});

describe("a file that is replaced", () => {
  it("is made under another name for its owner alone, flushed, renamed, and its folder flushed", async () => {
    const root = newFolder();
    await (await storeWithSession(root, { sessionsJson: false })).close();
    const calls: string[] = [];
    const paths = new Map<number, string>();
    const files: Files = {
      ...nodeFiles,
      open(path, mode) {
        const handle = nodeFiles.open(path, mode);
        paths.set(handle, path);
        if (mode === "create") calls.push(`create ${path}`);
        return handle;
      },
      flush(handle) {
        calls.push(`flush ${paths.get(handle)}`);
        return nodeFiles.flush(handle);
      },
      flushNow(handle) {
        calls.push(`flush ${paths.get(handle)}`);
        nodeFiles.flushNow(handle);
      },
      flushFolder(path) {
        calls.push(`flush folder ${path}`);
        nodeFiles.flushFolder(path);
      },
      rename(from, to) {
        expect(execFileSync("stat", ["-c", "%a", from]).toString().trim()).toBe("600");
        calls.push(`rename ${from} ${to}`);
        nodeFiles.rename(from, to);
      },
    };
    const store = createJsonlStore({ root, files, sessionsJson: true });
    const { records } = await store.append(mainRef, [userDraft("one"), userDraft("two")]);
    await store.redact(mainRef, [records[0]?.id ?? ""], { reason: "test" });
    await store.close();
    const renames = calls.flatMap((call, at) => (call.startsWith("rename ") ? [{ at, call }] : []));
    const targets = renames.map(({ call }) => call.split(" ")[2]?.split("/").at(-1));
    expect(targets).toEqual(expect.arrayContaining(["s1.jsonl", "sessions.json", "sessions-view.json"]));
    const made = new Set<string>();
    for (const { at, call } of renames) {
      const [, from = "", to = ""] = call.split(" ");
      const before = calls.slice(0, at);
      // A file that got its first name here was made and flushed before; a second name moves it as it is.
      if (!made.has(from)) {
        const created = before.lastIndexOf(`create ${from}`);
        expect(created).toBeGreaterThanOrEqual(0);
        expect(before.slice(created)).toContain(`flush ${from}`);
      }
      made.add(to);
      expect(calls[at + 1]).toBe(`flush folder ${to.slice(0, to.lastIndexOf("/"))}`);
    }
  });
});

describe("the package", () => {
  it("needs no database driver and no native module, neither to be installed nor to run", () => {
    const seen = new Set<string>();
    const visit = (name: string): void => {
      if (seen.has(name)) return;
      seen.add(name);
      const path = join(import.meta.dirname, "../../", name.replace("@throughline/", ""), "package.json");
      const manifest = JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, string> | undefined>;
      expect(manifest["optionalDependencies"]).toBeUndefined();
      for (const each of Object.keys(manifest["dependencies"] ?? {})) {
        // The stemmer of core is plain JavaScript without dependencies.
        if (each === "porter2") continue;
        expect(each).toMatch(/^@throughline\//);
        visit(each);
      }
    };
    visit("@throughline/store-jsonl");
    const root = newFolder();
    const program = `
      const { createJsonlStore } = await import("@throughline/store-jsonl");
      const ref = { namespace: "", agentId: "main", key: "agent:main:main" };
      await using store = createJsonlStore({ root: ${JSON.stringify(root)} });
      await store.save(ref, { sessionId: "s1" }, { ifRevision: null });
      await store.append(ref, [{ type: "message", message: { role: "user", content: "one" } }]);
      console.log((await store.load(ref)).messageCount);`;
    // A native module cannot be loaded by this process.
    const args = ["--no-addons", "--conditions=@throughline/source", "--input-type=module", "-e", program];
    expect(
      execFileSync(process.execPath, args, { cwd: import.meta.dirname })
        .toString()
        .trim(),
    ).toBe("1");
  });
});
