import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { binPath, cleanEnvironment, objects, runHere, sourceCondition, temporaryDirectory } from "./harness.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const idOf = (at: number): string => `00000000-0000-4000-8000-${String(at).padStart(12, "0")}`;

/** An OpenClaw folder of so many sessions; gives the number of records in each. */
function writeSessions(count: number, records: number, text: string): void {
  const folder = join(directory.path, "source/agents/main/sessions");
  mkdirSync(folder, { recursive: true });
  const index: Record<string, unknown> = {};
  const timestamp = "2026-02-01T12:00:00.000Z";
  for (let at = 0; at < count; at++) {
    const sessionId = idOf(at);
    index[`agent:main:telegram:direct:${at}`] = { sessionId, updatedAt: 1_769_962_601_713 + at };
    const file = openSync(join(folder, `${sessionId}.jsonl`), "w");
    writeSync(file, `${JSON.stringify({ type: "session", version: 3, id: sessionId, timestamp, cwd: "/work" })}\n`);
    for (let record = 0; record < records; record++) {
      const message = { role: "user", content: `${at}/${record} ${text}`, timestamp: 1 };
      const parentId = record === 0 ? null : `r${record - 1}`;
      writeSync(file, `${JSON.stringify({ type: "message", id: `r${record}`, parentId, timestamp, message })}\n`);
    }
    closeSync(file);
  }
  writeFileSync(join(folder, "sessions.json"), JSON.stringify(index));
}

/** `import` in a process of its own, with so much memory for objects. */
async function importSource(heapMegabytes: number): Promise<number | null> {
  const node = [sourceCondition, `--max-old-space-size=${heapMegabytes}`, binPath];
  const child = spawn(process.execPath, [...node, "import", join(directory.path, "source"), "--json"], {
    cwd: directory.path,
    env: cleanEnvironment(directory.path),
    stdio: ["ignore", "ignore", "ignore"],
  });
  const [code] = (await once(child, "close")) as [number | null];
  return code;
}

/** `import` in a process that ends itself with SIGKILL at a progress report; gives the signal. */
async function importUntil(report: number): Promise<string | null> {
  const program = join(import.meta.dirname, "killed-import.ts");
  const args = [sourceCondition, program, directory.path, join(directory.path, "source"), String(report)];
  const child = spawn(process.execPath, args, { env: cleanEnvironment(directory.path), stdio: "ignore" });
  const [, signal] = (await once(child, "close")) as [number | null, string | null];
  return signal;
}

async function stored(): Promise<readonly [sessions: unknown, messages: unknown]> {
  const { stdout } = await runHere(directory.path, ["stats", "--json", "--quiet"]);
  const { sessions, messages } = objects(stdout)[0] ?? {};
  return [sessions, messages];
}

describe("an import on the command line", () => {
  // 20 KB each: more in all than the heap holds.
  const records = testSize({ short: 2000, long: 3000 });

  it("of more than the heap of 64 MB holds runs in it", { timeout: 180_000 }, async () => {
    writeSessions(2, records, "x".repeat(20_000));
    expect(await importSource(64)).toBe(0);
    expect(await stored()).toEqual([2, 2 * records]);
  });

  it(
    "of many sessions is killed half way, goes on from there, and then has nothing to do",
    { timeout: 180_000 },
    async () => {
      const sessions = testSize({ short: 150, long: 600 });
      writeSessions(sessions, 20, "x".repeat(100));
      // Two reports for each session: when it begins and when it is stored.
      expect(await importUntil(sessions)).toBe("SIGKILL");
      const [before] = await stored();
      expect(Number(before)).toBeGreaterThanOrEqual(50);
      expect(Number(before)).toBeLessThan(sessions);
      const run = async (): Promise<unknown> => {
        const { code, stdout } = await runHere(directory.path, [
          "import",
          join(directory.path, "source"),
          "--json",
          "--quiet",
        ]);
        expect(code).toBe(0);
        return objects(stdout)[0]?.["totals"];
      };
      const second = (await run()) as { unchanged: number; imported: number; grown: number };
      expect(second.unchanged + second.imported + second.grown).toBe(sessions);
      expect(second.unchanged).toBeGreaterThanOrEqual(40);
      expect(await stored()).toEqual([sessions, 20 * sessions]);
      expect(await run()).toMatchObject({ unchanged: sessions, imported: 0, grown: 0, records: 0 });
    },
  );
});
