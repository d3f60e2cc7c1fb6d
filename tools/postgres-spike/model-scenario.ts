import assert from "node:assert/strict";
import { hasErrorCode } from "../../packages/core/src/index.ts";
import type {
  AppendDraft,
  AppendOptions,
  AppendResult,
  ErrorCode,
  RecordSource,
  SessionEntry,
  TurnRequest,
} from "../../packages/core/src/index.ts";
import {
  defaultStoreLimits,
  draftsFingerprint,
  linkRecords,
  patchEntry,
  prepareDrafts,
} from "../../packages/core/src/store.ts";
import { headAfter } from "../../packages/core/src/prepare-drafts.ts";
import { isSourcedDraft } from "../../packages/core/src/record-draft.ts";
import { nextTurnState } from "../../packages/core/src/turn-lease.ts";
import type { TurnState } from "../../packages/core/src/turn-lease.ts";
import type { Scenario, SeededRandom } from "./scenario.ts";

const hourMs = 3_600_000;

interface Model {
  lines: {
    readonly id: string;
    readonly parentId: string | null;
    readonly text: string;
    readonly source: RecordSource | null;
  }[];
  headId: string | null;
  windowSeq: number | null;
  turn: TurnState;
  revision: number;
  entry: SessionEntry;
  messageCount: number;
  keys: Map<
    string,
    { readonly fingerprint: string; readonly drafts: readonly AppendDraft[]; readonly result: AppendResult }
  >;
}

interface Step {
  readonly drafts: readonly AppendDraft[];
  readonly options: AppendOptions;
}

/** Random appends, one after the other, against core's own functions: the SQL must say what they say. */
export const modelScenario: Scenario = async ({ stores, random, quick, createSession }) => {
  const [store] = stores;
  assert(store !== undefined);
  const ref = await createSession();
  const created = await store.load(ref);
  assert(created !== null);
  const model: Model = {
    lines: [],
    headId: null,
    windowSeq: null,
    turn: { fence: 0, turn: null },
    revision: 1,
    entry: created.entry,
    messageCount: 0,
    keys: new Map(),
  };
  const steps = quick ? 150 : 1500;
  const verdicts = new Map<string, number>();
  for (let number = 0; number < steps; number++) {
    const step = randomStep(number, model, random);
    const expected = judge(model, step);
    let verdict: string;
    try {
      const result = await store.append(ref, step.drafts, step.options);
      verdict = result.replayed ? "replayed" : "applied";
      assert.equal(verdict, expected, `step ${number}`);
      if (result.replayed) {
        const first = model.keys.get(step.options.idempotencyKey ?? "")?.result;
        assert.deepEqual({ ...result, replayed: false }, first);
      } else apply(model, step, result);
    } catch (error) {
      if (expected === "applied" || !hasErrorCode(error, expected as ErrorCode)) throw error;
      verdict = expected;
    }
    verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
  }
  const state = await store.load(ref);
  assert(state !== null);
  assert.deepEqual(JSON.stringify(state.entry), JSON.stringify(model.entry));
  assert.equal(state.messageCount, model.messageCount);
  assert.equal(state.revision, model.revision);
  const { sessionId } = model.entry;
  const { headId, windowSeq, turn } = model;
  assert.deepEqual(state.head, { sessionId, lastSeq: model.lines.length, headId, windowSeq, ...turn });
  let seq = 0;
  for await (const page of store.read(ref, { payload: "source" })) {
    for (const record of page.records) {
      const line = model.lines[seq];
      seq += 1;
      assert.equal(record.seq, seq);
      assert.equal(record.parentId, line?.parentId);
      assert.deepEqual(record.source, line?.source ?? line?.text);
      assert.deepEqual(record.record, JSON.parse(line?.text ?? "null"));
      assert.equal(record.bytes, Buffer.from(record.source).length);
    }
  }
  assert.equal(seq, model.lines.length);
  const shown = [...verdicts].toSorted().map(([verdict, count]) => `${verdict} ${count}`);
  return [
    `${steps} random appends agree with the rules of core: ${shown.join(", ")}; ${seq} records read back, byte for byte`,
  ];
};

function randomStep(number: number, model: Model, random: SeededRandom): Step {
  const used = [...model.keys.entries()];
  if (used.length > 0 && random.chance(0.08)) {
    const [key, first] = random.pick(used);
    const drafts = random.chance(0.5) ? first.drafts : [{ type: "message", message: { text: "another" } }];
    return { drafts, options: { idempotencyKey: key } };
  }
  const drafts = Array.from({ length: random.below(5) }, (_, index) => randomDraft(number, index, model, random));
  const earlier = model.lines.length > 0 ? random.pick(model.lines).id : null;
  const turn = randomTurn(model, random);
  return {
    drafts,
    options: {
      ...(random.chance(0.3) ? { expect: { head: random.chance(0.7) ? model.headId : "elsewhere" } } : {}),
      ...(random.chance(0.3) ? { idempotencyKey: `key-${number}` } : {}),
      ...(drafts.length === 0 || random.chance(0.4) ? { entry: randomPatch(number, random) } : {}),
      ...(random.chance(0.1) ? { windowFromSeq: 1 + random.below(model.lines.length + 1) } : {}),
      ...(random.chance(0.05) ? { rewindTo: random.chance(0.2) ? null : earlier } : {}),
      ...(turn === null ? {} : { turn }),
    },
  };
}

function randomDraft(number: number, index: number, model: Model, random: SeededRandom): AppendDraft {
  const text = `${number}.${index} "quoted" \\ \u2028 \u0000 \ud800 é`;
  const id = `given-${number}-${index}`;
  const timestamp = "2026-02-03T04:05:06+02:00";
  const kind = random.below(8);
  if (kind === 0) return { type: "checkpoint", summary: text };
  if (kind === 1) return { type: "message", id: `"${id}"\\`, timestamp, message: { text } };
  if (kind === 2) return { type: "message", parentId: model.lines.at(0)?.id ?? null, message: { text } };
  if (kind === 3)
    return { source: `{ "type":"message","id":"${id}", "parentId":null,"timestamp":"${timestamp}","n":1.0}` };
  const record = { type: "message", id, parentId: model.headId, timestamp, flat: true };
  if (kind === 4) return { source: new Uint8Array([0x7b, 0xff, 0x00, 0x7d]), record };
  if (kind === 5 && model.lines.length > 0 && random.chance(0.3))
    return { type: "message", id: random.pick(model.lines).id };
  return { type: "message", message: { role: "user", content: text } };
}

function randomTurn(model: Model, random: SeededRandom): TurnRequest | null {
  const { fence } = model.turn;
  const stale = random.chance(0.2) ? 1 : 0;
  const leaseUntilMs = Date.now() + (random.chance(0.6) ? hourMs : -hourMs);
  const kind = random.below(10);
  if (kind < 2)
    return { action: "open", turnId: `turn-${fence}`, owner: "spike", leaseUntilMs, fence: fence + 1 - stale };
  if (kind < 5) return { action: "within", fence: fence - stale };
  if (kind === 5) return { action: "renew", leaseUntilMs, fence: fence - stale };
  return kind === 6 || model.turn.turn !== null ? { action: "close", fence: fence - stale } : null;
}

function randomPatch(number: number, random: SeededRandom): Readonly<Record<string, unknown>> {
  const field = `field "${random.below(4)}" \u0000`;
  return random.chance(0.3)
    ? { [field]: undefined }
    : { [field]: `\u0000\ud800 ${number}`, ["__proto__"]: number, model: "m" };
}

/** What must come out, by core's rules and in the contract's order. */
function judge(model: Model, { drafts, options }: Step): string {
  const first = model.keys.get(options.idempotencyKey ?? "");
  if (first !== undefined) return first.fingerprint === draftsFingerprint(drafts) ? "replayed" : "IDEMPOTENCY_MISMATCH";
  const prepared = prepare(drafts, null);
  const hasMainRecord = prepared.some((item) => !item.side);
  try {
    nextTurnState(model.turn, options.turn, { hasMainRecord, nowMs: Date.now() });
  } catch (error) {
    if (hasErrorCode(error, "SESSION_BUSY", "TURN_FENCED")) return error.code;
    throw error;
  }
  if (options.expect !== undefined && options.expect.head !== model.headId) return "APPEND_CONFLICT";
  return prepared.some((item) => model.lines.some((line) => line.id === item.id)) ? "RECORD_ID_TAKEN" : "applied";
}

function apply(model: Model, { drafts, options }: Step, result: AppendResult): void {
  const prepared = prepare(drafts, result);
  const linked = linkRecords(prepared, model.headId);
  const hasMainRecord = prepared.some((item) => !item.side);
  const firstSeq = model.lines.length + 1;
  assert.deepEqual(
    result.records.map(({ storedAtMs: _storedAtMs, ...record }) => record),
    linked.map(({ record, side, tsMs }, index) => ({
      seq: firstSeq + index,
      id: record.id,
      parentId: record.parentId,
      side,
      tsMs,
    })),
  );
  model.lines.push(...linked.map(({ record: { id, parentId }, text, source }) => ({ id, parentId, text, source })));
  model.headId = options.rewindTo !== undefined ? options.rewindTo : headAfter(linked, model.headId);
  model.windowSeq = options.windowFromSeq ?? model.windowSeq;
  model.turn = nextTurnState(model.turn, options.turn, { hasMainRecord, nowMs: Date.now() });
  model.messageCount += linked.filter(({ record }) => record.type === "message").length;
  if (options.entry !== undefined) {
    model.entry = patchEntry(model.entry, options.entry);
    model.revision += 1;
  }
  const { sessionId } = model.entry;
  const head = {
    sessionId,
    lastSeq: model.lines.length,
    headId: model.headId,
    windowSeq: model.windowSeq,
    ...model.turn,
  };
  assert.deepEqual(result.head, head);
  assert.equal(result.revision, model.revision);
  const { idempotencyKey: key } = options;
  if (key !== undefined) model.keys.set(key, { fingerprint: draftsFingerprint(drafts), drafts, result });
}

/** Prepares with the ids and times that the store made, in the order it made them. */
function prepare(drafts: readonly AppendDraft[], result: AppendResult | null): ReturnType<typeof prepareDrafts> {
  const made = (field: "id" | "timestamp"): Iterator<AppendResult["records"][number]> =>
    (result?.records ?? [])
      .filter((_, index) => {
        const draft = drafts[index];
        return draft !== undefined && !isSourcedDraft(draft) && draft[field] === undefined;
      })
      .values();
  const [ids, times] = [made("id"), made("timestamp")];
  return prepareDrafts(drafts, {
    ids: { next: () => (ids.next().value as { id: string } | undefined)?.id ?? "made" },
    clock: {
      nowMs: () => (times.next().value as { tsMs: number } | undefined)?.tsMs ?? 0,
      sleep: () => Promise.resolve(),
    },
    limits: defaultStoreLimits,
  });
}
