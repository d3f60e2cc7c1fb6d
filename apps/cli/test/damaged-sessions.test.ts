import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(async () => {
  directory = temporaryDirectory();
  await seed(directory.path, [
    { key: "agent:main:a", drafts: [user("one"), assistant("two")] },
    { key: "agent:main:b", drafts: [user("three"), assistant("four"), user("five")] },
    { key: "agent:main:c", drafts: [user("six")] },
  ]);
  spoil("WHERE session = 2 AND seq = 3");
});
afterEach(() => directory.remove());

function spoil(where: string): void {
  const database = new DatabaseSync(join(directory.path, "sessions.db"));
  database.exec(`UPDATE store_records SET text = '{oops' ${where}`);
  database.close();
}

interface Outcome {
  readonly code: number | null;
  readonly out: Record<string, unknown>[];
  readonly talk: Record<string, unknown>[];
}

async function run(...args: readonly string[]): Promise<Outcome> {
  const { code, stdout, stderr } = await runHere(directory.path, [...args, "--json"]);
  return { code, out: stdout === "" ? [] : objects(stdout), talk: stderr === "" ? [] : objects(stderr) };
}

const damage = { kind: "finding", code: "STORE_DAMAGED", severity: "error", key: "agent:main:b" };

describe("one damaged session", () => {
  it("is reported by copy --all, which copies the others and leaves no half of it in the target", async () => {
    for (const url of [`sqlite:${join(directory.path, "other.db")}`, `jsonl:${join(directory.path, "files")}`]) {
      const { code, out, talk } = await run("copy", "--all", "--to-store", url);
      expect(code).toBe(3);
      expect(out.map(({ key, state, kind }) => [kind, key, state])).toEqual([
        ["copy", "agent:main:a", "imported"],
        ["copy", "agent:main:b", "refused"],
        ["copy", "agent:main:c", "imported"],
        ["end", undefined, undefined],
      ]);
      expect(talk).toMatchObject([damage]);
      const { stderr } = await runHere(directory.path, ["copy", "--all", "--to-store", url]);
      expect(stderr).toMatch(/agent:main:b: error: STORE_DAMAGED: .*\n$/);
      const { out: there } = await run("sessions", "--archived", "--store", url);
      expect(
        there.flatMap(({ key, recordCount }) => (key === undefined ? [] : [[key, recordCount]])).toSorted(),
      ).toEqual([
        ["agent:main:a", 2],
        ["agent:main:c", 1],
      ]);
    }
  });

  it("is a failure where it is the one that was asked for", async () => {
    const { code, talk } = await run("copy", "agent:main:b", "--to-store", "jsonl:alone");
    expect(code).toBe(1);
    expect(talk.at(-1)).toMatchObject({ kind: "error", code: "STORE_CORRUPT" });
    expect((await run("export", "agent:main:b", "-o", "b.jsonl")).code).toBe(1);
    expect(existsSync(join(directory.path, "b.jsonl"))).toBe(false);
  });

  it("is reported by export --all, which writes the others", async () => {
    for (const to of ["jsonl", "openclaw", "pi"]) {
      const folder = join(directory.path, "out");
      const { code, out, talk } = await run("export", "--all", "--to", to, "-o", folder);
      expect(code).toBe(3);
      expect(out.flatMap(({ key }) => (typeof key === "string" ? [key] : []))).toEqual([
        "agent:main:a",
        "agent:main:c",
      ]);
      expect(talk).toContainEqual(expect.objectContaining(damage));
      const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
      expect(names.filter((name) => name.endsWith(".jsonl"))).toHaveLength(2);
      rmSync(folder, { recursive: true });
    }
  });
});

describe("records of another program that are not what they should be", () => {
  it.each([undefined, null, "text", 5, {}, { role: "assistant", content: [null, 5] }])(
    "a message that is %j keeps nobody from its session",
    async (message) => {
      const folder = join(directory.path, "odd/agents/main/sessions");
      mkdirSync(folder, { recursive: true });
      const timestamp = "2026-01-02T03:04:05.006Z";
      const lines = [
        { type: "session", version: 3, id: "s", timestamp, cwd: "/" },
        { type: "message", id: "a", parentId: null, timestamp, message: { role: "user", content: "hello" } },
        { type: "message", id: "b", parentId: "a", timestamp, message },
        { type: "message", id: "c", parentId: "b", timestamp, message: { role: "user", content: "again" } },
      ];
      writeFileSync(join(folder, "s.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      const key = "agent:main:import:direct:s";
      for (const command of ["show", "context", "explain", "compact", "checkpoint"]) {
        const dryRun = command === "compact" || command === "checkpoint" ? ["--dry-run"] : [];
        const store = `jsonl:${join(directory.path, "odd")}`;
        const { code, talk } = await run(command, key, ...dryRun, "--store", store);
        expect([command, code, talk.filter(({ kind }) => kind === "error")]).toEqual([command, 0, []]);
      }
    },
  );
});
