import assert from "node:assert/strict";
import { hasErrorCode } from "../../packages/core/src/index.ts";
import type { AppendOptions, SessionRef, SourcedRecord } from "../../packages/core/src/index.ts";
import type { Scenario, SeededRandom } from "./scenario.ts";
import type { SpikeStore } from "./spike-store.ts";

interface WriterReport {
  /** The seq each acknowledged record was given, by its id. */
  readonly acknowledged: Map<string, number>;
  readonly refusals: Map<string, number>;
}

/** Several writers on one session, each with its own idea of head and fence: the log must be one line. */
export const contentionScenario: Scenario = async ({ stores, random, quick, createSession }) => {
  const ref = await createSession();
  const rounds = quick ? 30 : 300;
  const startMs = performance.now();
  const reports = await Promise.all(stores.map((store, writer) => write(store, ref, writer, rounds, random)));
  const elapsedMs = performance.now() - startMs;
  const [reader] = stores;
  assert(reader !== undefined);
  const records: SourcedRecord[] = [];
  for await (const page of reader.read(ref, { payload: "source" })) records.push(...page.records);
  checkLinear(records);
  checkAcknowledged(records, reports);
  const refusals = new Map<string, number>();
  for (const report of reports) {
    for (const [code, count] of report.refusals) refusals.set(code, (refusals.get(code) ?? 0) + count);
  }
  assert((refusals.get("APPEND_CONFLICT") ?? 0) > 0 && (refusals.get("SESSION_BUSY") ?? 0) > 0);
  const refused = [...refusals].toSorted().map(([code, count]) => `${code} ${count}`);
  return [
    `${stores.length} writers on one session: ${records.length} records in ${Math.round(elapsedMs)} ms, seq dense, parents linear, ` +
      `every acknowledged record once, fences never going back`,
    `conflicts resolved by trying again with what the refusal said, never by a look-up: ${refused.join(", ")}`,
  ];
};

async function write(
  store: SpikeStore,
  ref: SessionRef,
  writer: number,
  rounds: number,
  random: SeededRandom,
): Promise<WriterReport> {
  const report: WriterReport = { acknowledged: new Map(), refusals: new Map() };
  let known: { headId: string | null; fence: number } = { headId: null, fence: 0 };
  for (let round = 0; round < rounds;) {
    const options = randomOptions(writer, known, random);
    const drafts = Array.from({ length: 1 + random.below(3) }, (_, index) => ({
      type: random.chance(0.25) ? "checkpoint" : "message",
      id: `w${writer}-${round}-${index}`,
      fence: options.turn?.fence ?? null,
    }));
    try {
      const result = await store.append(ref, drafts, options);
      for (const record of result.records) report.acknowledged.set(record.id, record.seq);
      known = { headId: result.head.headId, fence: result.head.fence };
      round += 1;
    } catch (error) {
      if (!hasErrorCode(error, "APPEND_CONFLICT", "SESSION_BUSY", "TURN_FENCED")) throw error;
      report.refusals.set(error.code, (report.refusals.get(error.code) ?? 0) + 1);
      // The refusal brought the state along.
      const { head_id: headId, fence } = error.details;
      known = { headId: typeof headId === "string" ? headId : null, fence: Number(fence) };
    }
  }
  return report;
}

function randomOptions(
  writer: number,
  known: { readonly headId: string | null; readonly fence: number },
  random: SeededRandom,
): AppendOptions {
  const expect = random.chance(0.5) ? { expect: { head: known.headId } } : {};
  const kind = random.below(10);
  // A lease of a few milliseconds runs out while others write: the newer turn fences the older one off.
  const leaseUntilMs = Date.now() + random.below(6);
  if (kind < 2) {
    return {
      ...expect,
      turn: {
        action: "open",
        turnId: `turn-${writer}`,
        owner: `writer ${writer}`,
        leaseUntilMs,
        fence: known.fence + 1,
      },
    };
  }
  if (kind < 4) return { ...expect, turn: { action: "within", fence: known.fence } };
  if (kind === 4) return { ...expect, turn: { action: "close", fence: known.fence } };
  return expect;
}

function checkLinear(records: readonly SourcedRecord[]): void {
  let headId: string | null = null;
  let newestFence = 0;
  for (const [index, record] of records.entries()) {
    assert.equal(record.seq, index + 1);
    assert.equal(record.parentId, headId);
    if (!record.side) headId = record.id;
    const { fence } = record.record;
    if (typeof fence === "number") {
      assert(fence >= newestFence, `seq ${record.seq} was written under fence ${fence} after ${newestFence}`);
      newestFence = fence;
    }
  }
  assert.equal(new Set(records.map((record) => record.id)).size, records.length);
}

function checkAcknowledged(records: readonly SourcedRecord[], reports: readonly WriterReport[]): void {
  const acknowledged = new Map(reports.flatMap((report) => [...report.acknowledged]));
  assert.equal(acknowledged.size, records.length);
  for (const record of records) assert.equal(acknowledged.get(record.id), record.seq);
}
