import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  binPath,
  cleanEnvironment,
  objects,
  runHere,
  seed,
  sourceCondition,
  temporaryDirectory,
  user,
} from "./harness.ts";

const nobody = 65_534;
const isRoot = process.getuid?.() === 0;

interface Outcome {
  readonly code: number | null;
  readonly errors: readonly Record<string, unknown>[];
  readonly text: string;
}

/** As a user whom permissions bind. */
function runBound(home: string, args: readonly string[]): Outcome {
  const { status, stdout, stderr } = spawnSync(process.execPath, [sourceCondition, binPath, ...args, "--json"], {
    cwd: "/",
    env: cleanEnvironment(home),
    encoding: "utf8",
    ...(isRoot ? { uid: nobody, gid: nobody } : {}),
  });
  const talk = stderr === "" ? [] : objects(stderr);
  return { code: status, errors: talk.filter(({ kind }) => kind === "error"), text: stdout + stderr };
}

let directory = temporaryDirectory();
beforeEach(() => (directory = temporaryDirectory()));
afterEach(() => directory.remove());

/** Whether the other user reaches the program at all. */
const isReachable =
  process.platform !== "win32" &&
  spawnSync(process.execPath, [sourceCondition, binPath, "--version"], {
    cwd: "/",
    ...(isRoot ? { uid: nobody, gid: nobody } : {}),
  }).status === 0;

describe.skipIf(!isReachable)("a store its user may not read (a program that another user reaches only)", () => {
  it(
    "is named with the cause and a remedy that helps, and no command calls it a beginning",
    { tags: ["slow"] },
    async () => {
      const home = join(directory.path, "home");
      mkdirSync(home);
      await seed(home, [{ key: "agent:main:a", drafts: [user("one")] }]);
      const path = join(home, "sessions.db");
      if (isRoot) for (const each of [directory.path, home, path]) chownSync(each, nobody, nobody);
      for (const [closed, open, asked] of [
        [path, 0o600, path],
        [home, 0o700, home],
      ] as const) {
        chmodSync(closed, 0);
        for (const args of [["sessions"], ["doctor"]]) {
          const { code, errors, text } = runBound(home, args);
          expect([args[0], code, errors.length]).toEqual([args[0], 1, 1]);
          expect(errors).toMatchObject([
            { code: "FILE_UNREADABLE", message: expect.stringContaining("cannot be read.") },
          ]);
          expect(text).not.toMatch(/Make room|There is no store yet/);
          expect(errors[0]?.["remedy"]).toMatch(new RegExp(`chmod u\\+rwx? ${asked}`));
        }
        // What the remedy says.
        chmodSync(closed, open);
        expect(runBound(home, ["sessions"]).code).toBe(0);
      }
    },
  );
});

describe("a line that was malformed before it was imported", () => {
  it("is a warning about that line, and no damage of the store", async () => {
    const store = join(directory.path, "s.db");
    const lines = [
      '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/x"}',
      '{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"hi"}}',
      "{oops",
    ];
    const file = join(directory.path, "t.jsonl");
    writeFileSync(file, `${lines.join("\n")}\n`);
    expect((await runHere(directory.path, ["import", file, "--store", `sqlite:${store}`])).code).toBe(3);
    for (const args of [["doctor"], ["doctor", "--repair"]]) {
      const { code, stdout, stderr } = await runHere(directory.path, [...args, "--store", `sqlite:${store}`, "--json"]);
      expect(code).toBe(3);
      expect(objects(stdout).filter(({ kind }) => kind === "finding")).toMatchObject([
        { code: "LINE_MALFORMED", severity: "warning", remedy: expect.stringContaining("Nothing to do for the store") },
      ]);
      expect(stderr).not.toMatch(/restore-backup|doctor --repair/);
    }
    expect((await runHere(directory.path, ["verify", "--full", "--store", `sqlite:${store}`])).code).toBe(0);
  });
});
