import { spawn } from "node:child_process";
import type { StoredRecord } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { testSize } from "../../../tools/test-size.ts";
import { contend, contentionChild, seededNumbers, type Operation } from "./contention.ts";
import { findDisorder, findEntryProblems, findSessionProblems, findViewProblems } from "./contention-checks.ts";
import { countFaults } from "./fault-counts.ts";
import { mainRef, storeWithSession, textsOf } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const child = bundledWorker(new URL("./append-child.ts", import.meta.url));
const contender = bundledWorker(contentionChild);

interface Run {
  readonly acknowledged: readonly string[];
  readonly code: number | null;
  readonly errors: string;
}

/** Runs the child; kills it, hard, some time after its first acknowledgement when asked to. */
function append(root: string, name: string, count: number, bytes: number, killAfterMs?: number): Promise<Run> {
  return new Promise((resolve) => {
    const running = spawn(process.execPath, [child, root, name, String(count), String(bytes)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    let errors = "";
    let timer: NodeJS.Timeout | undefined;
    running.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (killAfterMs !== undefined) timer ??= setTimeout(() => running.kill("SIGKILL"), killAfterMs);
    });
    running.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
    running.on("close", (code) => {
      clearTimeout(timer);
      resolve({ acknowledged: output.split("\n").slice(0, -1), code, errors });
    });
  });
}

describe("several processes", () => {
  it("append to one session without a gap and without a loss", { tags: ["slow"], timeout: 60_000 }, async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const names = ["a", "b", "c", "d"];
    const runs = await Promise.all(names.map((name) => append(root, name, 200, 100)));
    expect(runs.map(({ errors }) => errors)).toEqual(["", "", "", ""]);
    const records: StoredRecord[] = [];
    for await (const page of store.read(mainRef)) records.push(...page.records);
    expect(records.map(({ seq }) => seq)).toEqual(Array.from({ length: 800 }, (_, index) => index + 1));
    expect(records.every(({ parentId }, index) => parentId === (records[index - 1]?.id ?? null))).toBe(true);
    const texts = await textsOf(store);
    for (const [place, name] of names.entries()) {
      const own = texts.flatMap((text, index) =>
        text.startsWith(`${name}-`) ? [`${text.split(" ")[0]?.slice(2)} ${index + 1}`] : [],
      );
      expect(own).toEqual(runs[place]?.acknowledged);
    }
    await store.close();
  });

  it.for([
    ["of 200 bytes", 200, testSize({ short: 4, long: 100 })],
    ["of 2 KB", 2000, testSize({ short: 2, long: 100 })],
    ["of 50 KB", 50_000, testSize({ short: 4, long: 100 })],
    ["of 3 MB", 3_000_000, testSize({ short: 2, long: 20 })],
  ] as const)(
    "killed while appending records %s lose nothing they acknowledged",
    { timeout: testSize({ short: 120_000, long: 1_200_000 }) },
    async ([_name, bytes, rounds], context) => {
      const root = newFolder();
      await (await storeWithSession(root)).close();
      const acknowledged: string[] = [];
      for (let round = 0; round < rounds; round++) {
        const run = await append(root, `r${round}`, 100_000, bytes, 5 + round * 6);
        expect(run.errors).toBe("");
        acknowledged.push(...run.acknowledged.map((line) => `r${round}-${line}`));
      }
      const store = createJsonlStore({ root });
      const seen = (await textsOf(store)).map((text, index) => `${text.split(" ")[0]} ${index + 1}`);
      await store.close();
      expect(new Set(seen).size).toBe(seen.length);
      const wanted = new Set(acknowledged);
      expect(seen.filter((line) => wanted.has(line))).toEqual(acknowledged);
      // A record that was written and not acknowledged may be there: one at most for each process.
      expect(seen.length - acknowledged.length).toBeLessThanOrEqual(rounds);
      // Each is killed after its first word; how many more it says is the machine's affair.
      expect(acknowledged.length).toBeGreaterThanOrEqual(rounds);
      countFaults(context, { kills: rounds });
    },
  );

  it(
    "eight of them, some killed, leave one session as one would that does a thing at a time",
    { tags: ["slow"], timeout: 240_000 },
    async (context) => {
      const root = newFolder();
      await (await storeWithSession(root, { sessionsJson: true })).close();
      const seed = Math.floor(Math.random() * 1_000_000);
      const operationsEach = testSize({ short: 8, long: 40 });
      const operations = await contend({
        root,
        child: contender,
        what: "session",
        processes: 8,
        killsEach: 1,
        operationsEach,
        random: seededNumbers(seed),
      });
      await using store = createJsonlStore({ root, sessionsJson: true });
      expect(await findSessionProblems(store, operations), `seed ${seed}`).toEqual([]);
      expect(operations.filter(({ got }) => got !== null).length).toBeGreaterThanOrEqual(8 * (operationsEach + 1));
      countFaults(context, { kills: 8 });
    },
  );
});

describe("eight processes at work on the entries", () => {
  it.for([
    ["without sessions.json", false],
    ["with sessions.json, which says the same", true],
  ] as const)(
    "some of them killed, leave what one would have left that does a thing at a time, %s",
    { tags: ["slow"], timeout: 240_000 },
    async ([_name, sessionsJson], context) => {
      const root = newFolder();
      await (await storeWithSession(root, { sessionsJson })).close();
      const seed = Math.floor(Math.random() * 1_000_000);
      const operationsEach = testSize({ short: 5, long: 15 });
      const work = {
        what: "entries",
        child: contender,
        processes: 8,
        killsEach: 1,
        operationsEach,
        sessionsJson,
      } as const;
      const operations = await contend({ root, ...work, random: seededNumbers(seed) });
      await using store = createJsonlStore({ root, sessionsJson });
      expect(await findEntryProblems(store, operations), `seed ${seed}`).toEqual([]);
      if (sessionsJson) expect(await findViewProblems(store, root), `seed ${seed}`).toEqual([]);
      expect(operations.filter(({ got }) => got !== null).length).toBeGreaterThanOrEqual(8 * (operationsEach + 1));
      countFaults(context, { kills: 8 });
    },
  );
});

describe("the order of operations", () => {
  const operation = (name: string, beganAt: number, endedAt: number | null, got: number | null): Operation => ({
    name,
    index: 0,
    beganAt: BigInt(beganAt),
    got,
    endedAt: endedAt === null ? null : BigInt(endedAt),
  });

  it("is none when one that was over comes after one that had not begun, or two have one place", () => {
    expect(findDisorder([operation("a", 1, 4, 2), operation("b", 2, 3, 1), operation("c", 5, null, null)])).toEqual([]);
    expect(findDisorder([operation("a", 1, 2, 2), operation("b", 3, 4, 1)])).toEqual([
      "a-0 ended before b-0 began and comes after it",
    ]);
    expect(findDisorder([operation("a", 1, 9, 1), operation("b", 2, 3, 3), operation("c", 4, 8, 2)])).toEqual([
      "b-0 ended before c-0 began and comes after it",
    ]);
    expect(findDisorder([operation("a", 1, 3, 1), operation("b", 1, 3, 1)])).toEqual(["a-0 and b-0 were both told 1"]);
  });
});
