import type { AppendDraft, AppendOptions, Durability } from "../../packages/core/src/index.ts";
import type { AppendStep, DraftPlan, EntryPlan } from "./history-steps.ts";
import type { ModelSession } from "../../packages/store-conformance/src/model/session-model.ts";

/** What a step stands at: the session it is about, if there is one, and the time. */
export interface StepContext {
  readonly session: ModelSession | undefined;
  readonly nowMs: number;
  /** The step's number, for ids that are new. */
  readonly at: number;
}

/** The drafts of a step. */
export function draftsOf(step: AppendStep, context: StepContext): readonly AppendDraft[] {
  return step.drafts.map((plan, index) => draftOf(plan, index, context));
}

function draftOf(plan: DraftPlan, index: number, { session, at }: StepContext): AppendDraft {
  const { type, id, timestamp, fields, form } = plan;
  const records = session?.records ?? [];
  const parentId =
    typeof plan.parent === "number"
      ? (records[plan.parent % Math.max(1, records.length)]?.record.id ?? null)
      : plan.parent === "unknown"
        ? "nobody"
        : null;
  if (form === "fields") {
    const parent = plan.parent === undefined || parentId === id ? {} : { parentId };
    return { type, ...(id === undefined ? {} : { id }), ...parent, ...(timestamp ? { timestamp } : {}), ...fields };
  }
  const ownId = id ?? `line${at}-${index}`;
  const parent = plan.parent === undefined ? (session?.headId ?? null) : parentId;
  const stated = { id: ownId, parentId: parent === ownId ? null : parent, timestamp: timestamp ?? lineTime };
  const record = { type, ...stated, ...fields };
  const json = JSON.stringify(record);
  switch (form) {
    case "line":
      return { source: json };
    case "spaced line":
      return { source: ` { ${json.slice(1, -1)} } \t` };
    case "line with a carriage return":
      return { source: `${json}\r` };
    case "line with a member twice":
      return { source: `${json.slice(0, -1)},"twice":1,"twice":2,"type":${JSON.stringify(type)}}` };
    case "line with large numbers":
      return { source: `${json.slice(0, -1)},"large":1e400,"negative":-0,"long":${"9".repeat(400)},"whole":1.0}` };
    case "line nested deep":
      return { source: `${json.slice(0, -1)},"deep":${"[".repeat(190)}${"]".repeat(190)}}` };
    case "bytes":
      return { source: new Uint8Array([0x7b, 0xff, 0xfe, 0x22, 0, 0x7d]), record };
    case "text with a meaning":
      return { source: meaninglessTexts[at % meaninglessTexts.length] ?? "", record };
    case "header": {
      const header = { type: "session", version: 3, timestamp: lineTime, cwd: "/" };
      const line = JSON.stringify({ ...header, id: session?.sessionId ?? "s1" });
      return { source: line, record: { ...header, id: `header:${ownId}`, parentId: null } };
    }
  }
}

const lineTime = "2026-02-02T02:02:02.000Z";
const meaninglessTexts = ["", "no JSON", "\u2028", " ", '{"role":"user"}', "\ufeff{}"];

/** The fields a step sets in an entry; `undefined` takes one out. */
export function fieldsOf({ set, unset, updatedAt }: EntryPlan, nowMs: number): Readonly<Record<string, unknown>> {
  const gone = unset.map((field) => [field, undefined] as const);
  const time =
    updatedAt === undefined ? [] : [["updatedAt", updatedAt === "no time" ? "bad" : nowMs + updatedAt] as const];
  return Object.fromEntries([...Object.entries(set), ...gone, ...time]);
}

/** The options of a step's append. */
export function optionsOf(step: AppendStep, context: StepContext, durabilities: readonly Durability[]): AppendOptions {
  const { session, nowMs, at } = context;
  const { durability, entry, idempotencyKey, expect, window, rewind, turn } = step;
  const mains = session?.records.filter(({ side }) => !side) ?? [];
  const rewindTo = typeof rewind === "number" ? mains[rewind % Math.max(1, mains.length)]?.record.id : null;
  const fence = (session?.fence ?? 0) + (turn?.action === "open" ? 1 : 0) + (turn?.fenceOff ?? 0);
  const leaseUntilMs = nowMs + (turn?.leaseMs ?? 0);
  return {
    ...(durability !== undefined && durabilities.includes(durability) ? { durability } : {}),
    ...(entry === undefined ? {} : { entry: fieldsOf(entry, nowMs) }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(expect === undefined
      ? {}
      : { expect: { head: expect === "head" ? (session?.headId ?? null) : expect === "none" ? null : "wrong" } }),
    ...(window === undefined ? {} : { windowFromSeq: Math.floor(window * ((session?.records.length ?? 0) + 1)) }),
    ...(rewind === undefined || rewindTo === undefined ? {} : { rewindTo }),
    ...(turn === undefined
      ? {}
      : turn.action === "open"
        ? { turn: { action: turn.action, turnId: `turn${at}`, owner: "somebody", leaseUntilMs, fence } }
        : turn.action === "renew"
          ? { turn: { action: turn.action, leaseUntilMs, fence } }
          : { turn: { action: turn.action, fence } }),
  };
}
