import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(async () => {
  directory = temporaryDirectory();
  for (const url of [undefined, `jsonl:${join(directory.path, "files")}`]) {
    await seed(
      directory.path,
      [
        { key: "agent:main:a", drafts: [user("the harbour lights are lit"), assistant("lit at dusk")] },
        { key: "agent:main:b", drafts: [user("harbour without any"), user("lights in the harbour, many lights")] },
        { key: "agent:work:c", drafts: [user("harbour lights of work")] },
      ],
      url,
    );
  }
});
afterEach(() => directory.remove());

const jsonl = (): readonly string[] => ["--store", `jsonl:${join(directory.path, "files")}`];

async function run(...args: readonly string[]): Promise<{
  readonly code: number | null;
  readonly out: Record<string, unknown>[];
  readonly talk: Record<string, unknown>[];
}> {
  const { code, stdout, stderr } = await runHere(directory.path, [...args, "--json"]);
  return { code, out: stdout === "" ? [] : objects(stdout), talk: stderr === "" ? [] : objects(stderr) };
}

describe("search", () => {
  const places = (out: readonly Record<string, unknown>[]): string[] =>
    out.flatMap(({ kind, key, seq }) => (kind === "hit" ? [`${String(key)} ${String(seq)}`] : [])).toSorted();

  it.each<readonly [string, readonly string[]]>([
    ["harbour lights", ["agent:main:a 1", "agent:main:b 2"]],
    ['"harbour lights"', ["agent:main:a 1"]],
    ["HARB*", ["agent:main:a 1", "agent:main:b 1", "agent:main:b 2"]],
    ["nothing of it", []],
  ])("finds for %s the same with an index and without", async (query, expected) => {
    const [indexed, scanned, files] = [
      await run("search", query),
      await run("search", query, "--scan"),
      await run("search", query, ...jsonl()),
    ];
    for (const { out } of [indexed, scanned, files]) expect(places(out)).toEqual(expected);
    expect(indexed.talk).toEqual([]);
    expect(files.talk).toMatchObject([{ kind: "note", message: "No index: every record is read." }]);
  });

  it("keeps to one session, one role, one agent and a number of hits", async () => {
    expect(places((await run("search", "harbour", "--session", "agent:main:b")).out)).toEqual([
      "agent:main:b 1",
      "agent:main:b 2",
    ]);
    expect(places((await run("search", "lit", "--role", "assistant")).out)).toEqual(["agent:main:a 2"]);
    expect(places((await run("search", "harbour", "--all-agents")).out)).toHaveLength(4);
    expect(places((await run("search", "harbour", "--limit", "1")).out)).toHaveLength(1);
    await run("delete", "agent:main:a");
    expect(places((await run("search", "lights")).out)).toEqual(["agent:main:b 2"]);
    expect(places((await run("search", "lights", "--archived")).out)).toEqual(["agent:main:a 1", "agent:main:b 2"]);
  });
});

describe("backup and restore-backup", () => {
  it("write the store to a new file and put it back, keeping what was there", async () => {
    const { out } = await run("backup", "kept.db");
    expect(out).toMatchObject([{ kind: "backup", sizeBytes: statSync(join(directory.path, "kept.db")).size }]);
    expect(statSync(join(directory.path, "kept.db")).mode & 0o777).toBe(0o600);
    await run("delete", "agent:main:a", "--purge", "--yes");
    expect((await run("restore-backup", "kept.db")).code).toBe(2);
    expect((await run("show", "agent:main:a")).code).toBe(1);
    const restored = await run("restore-backup", "kept.db", "--yes");
    expect(restored.out).toMatchObject([
      { kind: "restored", sessions: 3, keptPath: expect.stringContaining("before-restore") },
    ]);
    expect(existsSync(String(restored.out[0]?.["keptPath"]))).toBe(true);
    expect((await run("show", "agent:main:a")).out).toHaveLength(3);
    expect((await run("verify", "--full")).code).toBe(0);
  });

  it("refuse what is no backup, and say where there is none to be had", async () => {
    expect((await run("restore-backup", "missing.db", "--yes")).talk).toMatchObject([{ code: "FILE_NOT_FOUND" }]);
    const before = readdirSync(directory.path).toSorted();
    expect((await run("restore-backup", "chat.txt", "--store", "sqlite:x.db")).code).toBe(1);
    expect(readdirSync(directory.path).toSorted()).toEqual(before);
    for (const command of [
      ["backup", "x.db", "--store", "memory:"],
      ["reindex", ...jsonl()],
      ["restore-backup", "x.db", ...jsonl()],
    ])
      expect((await run(...command)).talk.at(-1)).toMatchObject({ code: "CAPABILITY_UNSUPPORTED" });
    expect((await run("backup", "folder", ...jsonl())).code).toBe(0);
    expect((await run("show", "agent:main:a", "--store", "jsonl:folder")).out).toHaveLength(3);
  });
});

describe("reindex", () => {
  it("makes the index anew, and everything is found again", async () => {
    expect((await run("reindex")).out).toMatchObject([{ kind: "reindex", lag: 0 }]);
    expect((await run("search", "harbour", "--all-agents")).out).toHaveLength(5);
    expect((await run("stats")).out).toMatchObject([{ sessions: 3, records: 5, messages: 5, agents: 2, searchLag: 0 }]);
  });
});
