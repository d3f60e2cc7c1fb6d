import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { createCheckpointer, listCheckpoints } from "@throughline/checkpoint";
import { readCheckpointState } from "@throughline/checkpoint/internal";
import { createCompactor } from "@throughline/compaction";
import { createSummaryRetry, readRetries, tokenMeasure } from "@throughline/compaction/internal";
import { type Clock, openSession, readWindow, type SessionStore } from "@throughline/core";
import { loadExisting, systemClock, systemRandom, systemRecordIds } from "@throughline/core/internal";
import { buildContext } from "@throughline/history";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import { createTokenEstimator, emptyCalibration } from "@throughline/tokens";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { killedRef as ref, summaryOf, talk, type KilledWork } from "./kill-steps-fixture.ts";
import { openStore } from "./process-store.ts";
import { allRecords, lostMessages } from "./whole-turn-fixture.ts";

const worker = bundledWorker(new URL("./kill-steps-worker.ts", import.meta.url));

type Scheme = "sqlite" | "jsonl";

const counter = await createTokenEstimator().counterFor(
  { provider: "anthropic", modelId: "claude-sonnet-4-5" },
  { method: "heuristic" },
);
const measure = tokenMeasure(counter, emptyCalibration);
const request = { counter, calibration: emptyCalibration, windowTokens: 8000 };
const works = (work: KilledWork) => ({
  summarize: () => Promise.resolve({ summary: summaryOf(work), source: "works", usage: null }),
});
/** The suite ends the process at every third call, of one store before it and of the other behind it; `all` ends both at each. */
const isFullRun = process.env["THROUGHLINE_KILLS"] === "all";
/** After every claim and every lease of a process that is gone. */
const later: Clock = { ...systemClock, nowMs: () => Date.now() + 3_600_000, sleep: systemClock.sleep };

/** The session before the work, in a folder that is copied for each process. */
async function prepared(scheme: Scheme, work: KilledWork): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "kill-steps-"));
  const store = openStore(scheme, folder);
  await openSession(store, ref, { random: systemRandom });
  await store.append(ref, talk(12));
  if (work === "retry") {
    const compactor = createCompactor({ store, clock: systemClock, ids: systemRecordIds });
    expect(await compactor.compact(ref, request)).toMatchObject({ kind: "compacted", source: "stub" });
  }
  await store.close();
  return folder;
}

/** Runs the work in a process that ends at a call of the store; null when it came to its end before. */
function runUntil(scheme: Scheme, folder: string, work: KilledWork, calls: number, isDone: boolean): string | null {
  const given = [scheme, folder, work, String(calls), String(isDone)];
  const ended = spawnSync(process.execPath, ["--conditions=@throughline/source", worker, ...given], {
    encoding: "utf8",
    timeout: 60_000,
  });
  if (ended.signal === "SIGKILL") return "killed";
  if (ended.status !== 0) throw new Error(ended.stderr);
  return null;
}

const shown = async (store: SessionStore): Promise<string> => {
  const { records, state } = await readWindow(store, ref);
  const context = buildContext(records, { headId: state.head.headId });
  expect(validateAnthropic(renderAnthropic(context).messages)).toEqual([]);
  return JSON.stringify(context.messages);
};

/** What holds in the old state and in the new one, and nothing between; then two processes at once finish it. */
const checks: Readonly<Record<KilledWork, (store: SessionStore, other: SessionStore) => Promise<void>>> = {
  async checkpoint(store, other) {
    const before = await listCheckpoints(store, ref);
    const state = readCheckpointState((await loadExisting(store, ref)).entry);
    expect(before.length).toBeLessThanOrEqual(1);
    expect(state.lastId).toBe(before[0]?.id ?? null);
    await store.append(ref, talk(1));
    const make = (where: SessionStore, owner: string) => {
      const writers = [{ name: owner, write: () => Promise.resolve('{"summary": "Somebody else finished it."}') }];
      const settings = { owner, writers, clock: later, ids: systemRecordIds };
      return createCheckpointer({ store: where, ...settings }).make(ref, 7000);
    };
    const both = await Promise.all([make(store, "one"), make(other, "two")]);
    expect(both.map(({ kind }) => kind).toSorted()).toEqual(["nothing", "written"]);
    expect(await listCheckpoints(store, ref)).toHaveLength(before.length + 1);
  },
  async compaction(store, other) {
    const records = await allRecords(store);
    const made = records.filter(({ type }) => type === "compaction").length;
    expect((await loadExisting(store, ref)).entry.compactionCount ?? 0).toBe(made);
    expect((await shown(store)).includes(summaryOf("compaction"))).toBe(made === 1);
    if (made > 0) return;
    const both = await Promise.all(
      [store, other].map((where) =>
        createCompactor({
          store: where,
          clock: systemClock,
          ids: systemRecordIds,
          summarizers: [works("compaction")],
        }).compact(ref, request),
      ),
    );
    expect(both.map(({ kind }) => kind).toSorted()).toEqual(["compacted", "superseded"]);
    expect((await loadExisting(store, ref)).entry.compactionCount).toBe(1);
  },
  async retry(store, other) {
    const isBetter = (await shown(store)).includes(summaryOf("retry"));
    expect(Object.keys(readRetries((await loadExisting(store, ref)).entry))).toHaveLength(isBetter ? 0 : 1);
    const run = (where: SessionStore) =>
      createSummaryRetry({
        store: where,
        clock: later,
        ids: systemRecordIds,
        summarizers: [works("retry")],
        measure,
      }).run(ref);
    await Promise.all([run(store), run(other)]);
    expect(await shown(store)).toContain(summaryOf("retry"));
    expect(readRetries((await loadExisting(store, ref)).entry)).toEqual({});
    expect((await loadExisting(store, ref)).entry.compactionCount).toBe(1);
  },
};

describe.each(["sqlite", "jsonl"] as const)("a process that is killed at a call of store-%s", (scheme) => {
  // In the short tier each work over one of the stores.
  const short = scheme === "sqlite" ? (["checkpoint", "retry"] as const) : (["compaction"] as const);
  it.each(isFullRun ? (["checkpoint", "compaction", "retry"] as const) : short)(
    "in the middle of a %s leaves the old state or the new, and another one finishes it once",
    async (work) => {
      const template = await prepared(scheme, work);
      const isSecond = scheme === "jsonl";
      const stride = isFullRun ? 1 : 3;
      let calls = isFullRun || !isSecond ? 1 : 2;
      for (; ; calls += stride) {
        const folder = mkdtempSync(join(tmpdir(), "kill-steps-"));
        cpSync(template, folder, { recursive: true });
        // Before the call and behind it by turns; in a full run each call both ways, by the one store or the other.
        const isDone = Math.floor((calls + (isSecond ? 1 : 0)) / stride) % 2 === 0;
        const ended = runUntil(scheme, folder, work, calls, isDone);
        const [store, other] = [openStore(scheme, folder), openStore(scheme, folder)];
        expect(lostMessages(await allRecords(store))).toEqual([]);
        await checks[work](store, other);
        expect(lostMessages(await allRecords(store))).toEqual([]);
        await Promise.all([store.close(), other.close()]);
        rmSync(folder, { recursive: true });
        if (ended === null) break;
      }
      rmSync(template, { recursive: true });
      expect(calls).toBeGreaterThan(4);
    },
    120_000,
  );
});
