import { execFileSync, spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ThroughlineError, type SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { exportAll, exportToFile } from "../src/export-files.ts";
import type { ImportSource } from "../src/import-types.ts";
import { describe, expect, it } from "vitest";
import { aroundCalls } from "@throughline/test-kit";
import {
  exported,
  fixtureFolder,
  header,
  importAll,
  jsonLines,
  message,
  recordsOf,
  refOf,
  sessionId,
  type FixtureFolder,
} from "./fixture-folder.ts";

const sessions = "state/agents/main/sessions";
const key = "agent:main:main";
const transcript = `${sessions}/${sessionId}.jsonl`;

function stateFolder(text: string | Uint8Array): FixtureFolder {
  return fixtureFolder({
    [`${sessions}/sessions.json`]: JSON.stringify({ [key]: { sessionId, updatedAt: 1 } }),
    [transcript]: text,
  });
}

/** Does something at the first call of a member of the store. */
function meanwhile(store: SessionStore, name: "load" | "append" | "save", act: () => void): SessionStore {
  let isDone = false;
  return aroundCalls(store, (call) => {
    if (call.name === name && !isDone) {
      isDone = true;
      act();
    }
    return call.run();
  });
}

async function sourcesOf(store: SessionStore, source: ImportSource): Promise<readonly string[]> {
  const records = await recordsOf(store, refOf(source));
  return records.map(({ source: line }) => (typeof line === "string" ? line : Buffer.from(line).toString("latin1")));
}

describe("a transcript that is cut", () => {
  const at = "2026-02-01T16:10:50.414Z";
  const whole = jsonLines(
    { type: "session", version: 3, id: "s", timestamp: at, cwd: "/" },
    { type: "message", id: "a", parentId: null, timestamp: at, message: { role: "user", content: "é\u2028" } },
    { type: "leaf", id: "l", targetId: "a" },
  );
  const bytes = Buffer.from(whole);

  it("at any byte gives every whole line, and later what is new", { tags: ["slow"] }, async () => {
    using folder = fixtureFolder();
    const path = folder.at("s.jsonl");
    const options = { from: "openclaw", key } as const;
    const outcomes = new Set<string>();
    for (let cut = 0; cut <= bytes.length; cut++) {
      writeFileSync(path, bytes.subarray(0, cut));
      const store = createMemoryStore();
      const [first] = await importAll(store, path, options);
      if (first === undefined) throw new Error("there is no result");
      expect(first.lines).toBe(first.records + first.lost.length);
      expect(first.error).toBeNull();
      const kept = await sourcesOf(store, first);
      const intact = bytes.subarray(0, cut).toString("utf8").split("\n").slice(0, -1);
      expect(kept.slice(0, intact.length)).toEqual(intact);
      const before = await exported(store, refOf(first), "jsonl");
      expect(before).toBe(bytes.subarray(0, cut).toString("latin1"));
      writeFileSync(path, bytes);
      const [second] = await importAll(store, path, options);
      outcomes.add(`${second?.state ?? ""} ${second?.error?.code ?? ""}`);
      expect(await exported(store, refOf(first), "jsonl")).toBe(bytes.toString("latin1"));
    }
    expect([...outcomes].toSorted()).toEqual(["grown ", "imported ", "unchanged "]);
  });
});

describe("a source that changes while it is imported", () => {
  const begun = jsonLines(header, message("a1", null));

  it("and grows: what it had is there, and the rest with the next import", async () => {
    using folder = stateFolder(begun);
    const store = createMemoryStore();
    const grow = (): void => appendFileSync(folder.at(transcript), jsonLines(message("a2", "a1")));
    const [first] = await importAll(meanwhile(store, "append", grow), folder.at("state"));
    expect(first).toMatchObject({ state: "imported", records: 2 });
    const [second] = await importAll(store, folder.at("state"));
    expect(second).toMatchObject({ state: "grown", records: 1 });
  });

  it.for([
    ["a folder", (path: string): void => void mkdirSync(path)],
    ["a pipe", (path: string): void => void execFileSync("mkfifo", [path])],
    ["a link that leads to itself", (path: string): void => symlinkSync(path, path)],
    ["a link to a device without an end", (path: string): void => symlinkSync("/dev/zero", path)],
    ["nothing", (): void => undefined],
  ] as const)("and becomes %s: refused, nobody waits, and the next import has it all", async ([, put]) => {
    using folder = stateFolder(begun);
    const path = folder.at(transcript);
    const store = createMemoryStore();
    const replace = (): void => {
      renameSync(path, folder.at("kept"));
      put(path);
    };
    const [first] = await importAll(meanwhile(store, "load", replace), folder.at("state"));
    expect(first?.state).toBe("refused");
    expect(["FILE_UNREADABLE", "FILE_NOT_FOUND", "PATH_UNSAFE"]).toContain(first?.error?.code);
    rmSync(path, { recursive: true, force: true });
    renameSync(folder.at("kept"), path);
    expect((await importAll(store, folder.at("state")))[0]).toMatchObject({ state: "imported", records: 2 });
  });

  it("and gets shorter: refused, and taken up when it is whole again", async () => {
    using folder = stateFolder(begun);
    const store = createMemoryStore();
    const cut = (): void => truncateSync(folder.at(transcript), 5);
    // It has been opened when its session is made.
    const [second] = await importAll(meanwhile(store, "save", cut), folder.at("state"));
    expect([second?.state, second?.error?.code]).toEqual(["refused", "FILE_UNREADABLE"]);
    folder.write(transcript, begun);
    expect((await importAll(store, folder.at("state")))[0]).toMatchObject({ state: "imported", records: 2 });
  });
});

describe("a source that is odd from the beginning", () => {
  it.for([
    ["a device without an end", () => "/dev/zero", "FILE_UNREADABLE"],
    ["a device with nothing", () => "/dev/null", "FILE_UNREADABLE"],
    [
      "a link that leads to itself",
      (folder: FixtureFolder): string => linkTo(folder, folder.at("link")),
      "PATH_UNSAFE",
    ],
    ["a pipe", (folder: FixtureFolder): string => pipeIn(folder), "FILE_UNREADABLE"],
    ["a name no file can have", (folder: FixtureFolder): string => folder.at("x".repeat(5000)), "FILE_UNREADABLE"],
    ["a name with a NUL", (folder: FixtureFolder): string => folder.at("a\0b"), "FILE_UNREADABLE"],
  ] as const)("%s is refused with its name", async ([, make, code]) => {
    using folder = fixtureFolder();
    const [source] = await importAll(createMemoryStore(), make(folder));
    expect([source?.state, source?.error?.code]).toEqual(["refused", code]);
  });

  it("a line of 200 MB is lost with its place, and those around it are there", { tags: ["slow"] }, async () => {
    using folder = stateFolder(`${JSON.stringify(header)}\n`);
    const path = folder.at(transcript);
    const sizeBytes = 200 * 1024 * 1024;
    truncateSync(path, `${JSON.stringify(header)}\n`.length + sizeBytes);
    appendFileSync(path, `\n${JSON.stringify(message("a1", null))}\n`);
    const store = createMemoryStore();
    const before = process.memoryUsage().arrayBuffers;
    const [source] = await importAll(store, folder.at("state"));
    expect(source).toMatchObject({ state: "imported", lines: 3, records: 2 });
    expect(source?.lost).toEqual([{ line: 2, bytes: sizeBytes, reason: "too-long" }]);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(150 * 1024 * 1024);
  });

  it("a folder and files that cannot be written are read like others, and stay as they are", async () => {
    using folder = stateFolder(jsonLines(header, message("a1", null)));
    const before = folder.state();
    const made = [folder.at(sessions), folder.at("state/agents/main"), folder.at("state")];
    for (const path of made) chmodSync(path, 0o500);
    try {
      const [source] = await importAll(createMemoryStore(), folder.at("state"));
      expect(source).toMatchObject({ state: "imported", records: 2 });
    } finally {
      for (const path of made) chmodSync(path, 0o700);
    }
    expect(folder.state()).toEqual(before);
  });
});

function linkTo(folder: FixtureFolder, target: string): string {
  symlinkSync(target, folder.at("link"));
  return folder.at("link");
}

function pipeIn(folder: FixtureFolder): string {
  execFileSync("mkfifo", [folder.at("pipe")]);
  return folder.at("pipe");
}

/** A file system of so many kilobytes; null where none can be mounted. */
function smallDisk(kilobytes: number): (Disposable & { readonly path: string }) | null {
  const path = mkdtempSync(join(tmpdir(), "throughline-small-"));
  const options = ["-t", "tmpfs", "-o", `size=${kilobytes}k`, "tmpfs", path];
  const isMounted = process.getuid?.() === 0 && spawnSync("mount", options).status === 0;
  const remove = (): void => {
    if (isMounted) execFileSync("umount", [path]);
    rmSync(path, { recursive: true });
  };
  if (!isMounted) remove();
  return isMounted ? { path, [Symbol.dispose]: remove } : null;
}

describe("a disk that is full", () => {
  it(
    "ends the import with an error that says so, and the next one goes on from there",
    { tags: ["slow"] },
    async (context) => {
      using disk = smallDisk(600);
      if (disk === null) return context.skip("needs to mount a small file system, as root");
      const texts = Array.from({ length: 40 }, (_, at) =>
        message(`a${at}`, at === 0 ? null : `a${at - 1}`, "x".repeat(20_000)),
      );
      const file = jsonLines(header, ...texts);
      using folder = stateFolder(file);
      const root = join(disk.path, "store");
      {
        await using store = createJsonlStore({ root, create: true });
        const error: unknown = await importAll(store, folder.at("state")).catch((reason: unknown) => reason);
        expect(ThroughlineError.isInstance(error) ? error.code : error).toBe("STORE_FULL");
      }
      execFileSync("mount", ["-o", "remount,size=8m", disk.path]);
      await using store = createJsonlStore({ root });
      const [source] = await importAll(store, folder.at("state"));
      expect([source?.state, source?.error]).toEqual(["grown", null]);
      expect(await exported(store, { namespace: "", agentId: "main", key }, "jsonl")).toBe(file);
    },
  );
});

describe("a target that is full", () => {
  it("is said to be, and no half of a file stays there", async (context) => {
    using disk = smallDisk(64);
    if (disk === null) return context.skip("needs to mount a small file system, as root");
    const store = createMemoryStore();
    const ref = { namespace: "", agentId: "main", key: "agent:main:a" };
    await store.save(ref, { sessionId: "a" }, { ifRevision: null });
    await store.append(ref, [{ type: "message", message: { role: "user", content: "x".repeat(200_000) } }]);
    await expect(exportToFile(store, ref, join(disk.path, "a.jsonl"), { to: "jsonl" })).rejects.toMatchObject({
      code: "STORE_FULL",
      retryable: true,
    });
    expect(readdirSync(disk.path)).toEqual([]);
  });
});

describe("a target that takes no files", () => {
  const ref = { namespace: "", agentId: "main", key: "agent:main:a" };

  async function storeOfOne(): Promise<ReturnType<typeof createMemoryStore>> {
    const store = createMemoryStore();
    await store.save(ref, { sessionId: "a" }, { ifRevision: null });
    await store.append(ref, [{ type: "message", message: { role: "user", content: "Hello" } }]);
    return store;
  }

  it("is said to be read-only, with the place and what to do, however deep the file would lie", async (context) => {
    using disk = smallDisk(64);
    if (disk === null) return context.skip("needs to mount a small file system, as root");
    execFileSync("mount", ["-o", "remount,ro", disk.path]);
    const store = await storeOfOne();
    const refusal = {
      code: "STORE_READ_ONLY",
      outcome: "not-applied",
      message: expect.stringContaining("EROFS") as string,
      remedy: expect.stringContaining("another place") as string,
    };
    const file = join(disk.path, "a.jsonl");
    await expect(exportToFile(store, ref, file, { to: "jsonl" })).rejects.toMatchObject({
      ...refusal,
      details: { path: file },
    });
    await expect(exportToFile(store, ref, join(disk.path, "b/c/a.jsonl"), { to: "jsonl" })).rejects.toMatchObject(
      refusal,
    );
    await expect(Array.fromAsync(exportAll(store, join(disk.path, "all"), { to: "jsonl" }))).rejects.toMatchObject(
      refusal,
    );
  });

  // Where a kernel says of a new folder that it does not exist, a recursive mkdir of Node's asks for ever.
  it("is no place to wait at, where the system has no folders to make", async (context) => {
    if (!existsSync("/proc/self")) return context.skip("needs /proc");
    const store = await storeOfOne();
    for (const path of ["/proc/throughline/a.jsonl", "/proc/throughline/deeper/a.jsonl"])
      await expect(exportToFile(store, ref, path, { to: "jsonl" })).rejects.toMatchObject({ code: "STORE_READ_ONLY" });
  });

  it("is told apart from a file that is in the way and from a name that is too long", async () => {
    using folder = fixtureFolder({ taken: "a file" });
    const store = await storeOfOne();
    await expect(exportToFile(store, ref, folder.at("taken/a.jsonl"), { to: "jsonl" })).rejects.toMatchObject({
      code: "FILE_UNREADABLE",
      remedy: expect.stringContaining("in its way") as string,
    });
    await expect(exportToFile(store, ref, folder.at("x".repeat(300)), { to: "jsonl" })).rejects.toMatchObject({
      code: "FILE_UNREADABLE",
      remedy: expect.stringContaining("shorter") as string,
    });
  });

  it("keeps no folder that was made for a file that could not be written", async (context) => {
    using disk = smallDisk(64);
    if (disk === null) return context.skip("needs to mount a small file system, as root");
    const store = await storeOfOne();
    await store.append(ref, [{ type: "message", message: { role: "user", content: "x".repeat(200_000) } }]);
    await expect(exportToFile(store, ref, join(disk.path, "b/c/a.jsonl"), { to: "jsonl" })).rejects.toMatchObject({
      code: "STORE_FULL",
    });
    expect(readdirSync(disk.path)).toEqual([]);
  });
});

describe("two imports of one folder at once", () => {
  it("make each session once, also one that is only a header", async () => {
    using folder = fixtureFolder();
    const index: Record<string, unknown> = {};
    const texts = [
      jsonLines(header),
      jsonLines(header, message("a1", null)),
      "",
      jsonLines({ type: "label", id: "x" }),
    ];
    for (const [at, text] of texts.entries()) {
      index[`agent:main:${at}`] = { sessionId: `s${at}`, updatedAt: 1, skillsSnapshot: { at } };
      folder.write(`${sessions}/s${at}.jsonl`, text);
    }
    folder.write(`${sessions}/sessions.json`, JSON.stringify(index));
    const store = createMemoryStore();
    const runs = await Promise.all([1, 2, 3].map(() => importAll(store, folder.at("state"))));
    for (const { state, error } of runs.flat()) {
      expect(state).not.toBe("skipped");
      if (error !== null) expect(["APPEND_CONFLICT", "REVISION_CONFLICT"]).toContain(error.code);
    }
    for (const [at, text] of texts.entries()) {
      const ref = { namespace: "", agentId: "main", key: `agent:main:${at}` };
      expect(await exported(store, ref, "jsonl")).toBe(text);
      expect((await recordsOf(store, ref)).length).toBe(text.split("\n").length);
    }
    expect((await importAll(store, folder.at("state"))).map(({ state, records }) => [state, records])).toEqual(
      texts.map(() => ["unchanged", 0]),
    );
  });
});
