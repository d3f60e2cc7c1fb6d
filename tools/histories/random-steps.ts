import { awkwardTexts, randomFields, randomValue, type RandomChoices, createRandomChoices } from "./random-choices.ts";
import {
  historyKeys,
  type AppendStep,
  type DamageKind,
  type DraftForm,
  type DraftPlan,
  type EntryPlan,
  type ForeignLine,
  type History,
  type HistoryStep,
  type StepAddress,
  type TranscriptAct,
} from "./history-steps.ts";

export interface HistoryPlan {
  readonly seed: number;
  readonly steps: number;
  readonly handles: number;
  /** Derived files are removed, made stale and overwritten. JSON Lines only. @default false */
  readonly withDamage?: boolean;
  /** Other programs write to transcripts and to `sessions.json`. JSON Lines only. @default false */
  readonly withForeign?: boolean;
}

/*
 * Left out, because stores differ there and nobody is harmed:
 * - a save with an id that is no session id, for which stores answer SESSION_ID_INVALID or REVISION_CONFLICT;
 * - a fork to another agent: SQLite makes it, JSON Lines refuses it;
 * - a window that begins beyond the last record: SQLite forgets it, the others keep it;
 * - an `order` of a read that is none.
 * Of a fork that JSON Lines makes after the clock was set back, `forkInModel` takes the activity time as it is told.
 */

const sessionIds = ["s1", "s2", "s3", "s4", "s5", "S1", "s.6", "s7-_", "constructor", "toString", "10", "9"];
const rareTypes = ["custom", "checkpoint", "label", "session_info", "leaf", "usage", "compaction", "x", "reset"];
const lineForms: readonly DraftForm[] = [
  "line",
  "spaced line",
  "line with a carriage return",
  "line with a member twice",
  "line with large numbers",
  "line nested deep",
  "bytes",
  "text with a meaning",
  "header",
];
const customTypes = ["x", "throughline.note", "throughline.turn", "throughline.edit", "throughline.future"];
const extraFields = ["extra", "0", "__proto__", "seqq", "source", "record", "constructor", "z\u2028"];
const entryFields = ["label", "sendPolicy", "n1", "__proto__", "1", "constructor", "a\u2028", "channel", "big"];
const durabilities = [undefined, "none", "process", "disk"] as const;
const damages: readonly DamageKind[] = [
  "index removed",
  "index journal removed",
  "index from earlier",
  "index cut",
  "index overwritten",
  "sessions.json removed",
];
const foreignLines: readonly ForeignLine[] = ["message", "message with a carriage return", "custom", "label", "name"];
const transcriptActs: readonly TranscriptAct[] = [
  "emptied",
  "header only",
  "last lines cut",
  "moved to .reset",
  "moved to .deleted",
  "deleted",
];
const delaysMs = [0, 3, 1000, Infinity];

/** The history of a seed: mostly appends, and between them whatever else can happen to sessions. */
export function randomHistory(plan: HistoryPlan): History {
  const choices = createRandomChoices(plan.seed);
  const keys = 2 + choices.below(historyKeys.length - 2);
  const stepChoices: StepChoices = { choices, keys, handles: plan.handles };
  const steps: HistoryStep[] = [0, 1].map((key) => {
    const entry = { set: {}, unset: [] };
    return { kind: "save", handle: 0, session: { key }, sessionId: sessionIds[key] ?? "", revision: "known", entry };
  });
  while (steps.length < plan.steps) {
    // `sessions.json` is where OpenClaw's changes are until a handle looked at it: a history that has both would lose some.
    const kinds = plan.withForeign === true ? damages.filter((kind) => kind !== "sessions.json removed") : damages;
    if (plan.withDamage === true && choices.isTrue(0.04))
      steps.push({ kind: "damage", damage: choices.of(kinds), agentId: randomAgent(choices), cutAt: choices.number() });
    else if (plan.withForeign === true && choices.isTrue(0.12)) steps.push(randomForeign(stepChoices));
    else steps.push(randomStep(stepChoices));
  }
  return {
    seed: plan.seed,
    handles: plan.handles,
    pageRecords: choices.of([3, 7, 500]),
    pageBytes: choices.of([1000, 2 * 1024 * 1024]),
    derivedDelaysMs: Array.from({ length: plan.handles }, () => choices.of(delaysMs)),
    steps,
  };
}

interface StepChoices {
  readonly choices: RandomChoices;
  readonly keys: number;
  readonly handles: number;
}

function randomAgent(choices: RandomChoices): string {
  return choices.of(["main", "other"]);
}

function randomAddress({ choices, keys }: StepChoices, archived = 0.1): StepAddress {
  const key = choices.below(keys);
  return choices.isTrue(archived) ? { key, archived: choices.below(100) } : { key };
}

function randomStep(stepChoices: StepChoices): HistoryStep {
  const { choices, keys } = stepChoices;
  const handle = choices.below(stepChoices.handles);
  const chance = choices.below(100);
  if (chance < 44) return randomAppend(stepChoices);
  if (chance < 57) return randomRead(stepChoices);
  const session = randomAddress(stepChoices);
  if (chance < 64) {
    const sessionId = choices.isTrue(0.4) ? null : choices.of(sessionIds);
    const revision = choices.of(["known", "known", "known", "known", "wrong", "none"] as const);
    const durability = choices.of(durabilities);
    const step = { kind: "save", handle, session, sessionId, revision, entry: randomEntry(choices) } as const;
    return durability === undefined ? step : { ...step, durability };
  }
  if (chance < 69)
    return { kind: "move", handle, session, action: choices.of(["rename", "archive"]), toKey: choices.below(keys) };
  if (chance < 72)
    return { kind: "move", handle, session: randomAddress(stepChoices, 0.9), action: "restore", toKey: 0 };
  if (chance < 74) return { kind: "remove", handle, session, purge: choices.isTrue(0.6) };
  if (chance < 77) {
    const records = Array.from({ length: 1 + choices.below(3) }, () => choices.below(1000));
    return { kind: "redact", handle, session, records, withUnknown: choices.isTrue(0.1) };
  }
  if (chance < 81) {
    const fork = {
      kind: "fork",
      handle,
      session,
      toKey: choices.below(keys),
      sessionId: choices.of(sessionIds),
    } as const;
    return choices.isTrue(0.5) ? fork : { ...fork, atSeq: choices.below(20) };
  }
  if (chance < 86) return randomList(stepChoices);
  if (chance < 91)
    return { kind: "clock", byMs: choices.of([1, 1, 10, 1000, 60_000, 3_600_000, 90_000_000, -5, -60_000, -100_000]) };
  if (chance < 96) return { kind: "reopen", handle, derivedDelayMs: choices.of(delaysMs) };
  return choices.of([{ kind: "verify", handle }, { kind: "backup", handle }, { kind: "compare all" }] as const);
}

function randomAppend(stepChoices: StepChoices): AppendStep {
  const { choices } = stepChoices;
  const count = choices.isTrue(0.1) ? 0 : choices.isTrue(0.7) ? 1 : choices.below(choices.isTrue(0.9) ? 5 : 40);
  const durability = choices.of(durabilities);
  const isKeyed = choices.isTrue(0.2);
  const withTurn = choices.isTrue(0.15);
  return {
    kind: "append",
    handle: choices.below(stepChoices.handles),
    reader: choices.below(stepChoices.handles),
    session: randomAddress(stepChoices, 0.06),
    drafts: Array.from({ length: count }, () => randomDraft(choices)),
    ...(durability === undefined ? {} : { durability }),
    ...(count === 0 || choices.isTrue(0.25) ? { entry: randomEntry(choices) } : {}),
    ...(isKeyed ? { idempotencyKey: choices.isTrue(0.1) ? "__proto__" : `key${choices.below(12)}` } : {}),
    ...(isKeyed && choices.isTrue(0.5) ? { repeat: choices.below(20) } : {}),
    ...(choices.isTrue(0.15) ? { expect: choices.of(["head", "head", "none", "wrong"] as const) } : {}),
    ...(choices.isTrue(0.12) ? { window: choices.number() } : {}),
    ...(choices.isTrue(0.08) ? { rewind: choices.isTrue(0.3) ? ("none" as const) : choices.below(1000) } : {}),
    ...(withTurn
      ? {
          turn: {
            action: choices.of(["open", "renew", "close", "within"] as const),
            fenceOff: choices.isTrue(0.15) ? 1 : 0,
            leaseMs: choices.of([10, 1000, 100_000]),
          },
        }
      : {}),
  };
}

const speakers: readonly Readonly<Record<string, unknown>>[] = [
  { role: "user" },
  { role: "assistant" },
  { role: "toolResult", toolCallId: "call_1", toolName: "read", isError: false },
];

function randomDraft(choices: RandomChoices): DraftPlan {
  const type = choices.isTrue(0.4) ? "message" : choices.of(rareTypes);
  const content = choices.isTrue(0.7) ? choices.of(awkwardTexts) : randomValue(choices);
  const own: Record<string, unknown> =
    type === "message"
      ? { message: { ...choices.of(speakers), content: choices.of(awkwardTexts), details: content } }
      : type === "custom"
        ? { customType: choices.of(customTypes), data: content, v: 1, critical: false }
        : type === "leaf"
          ? { targetId: null }
          : {};
  const parents = ["none", "unknown", choices.below(1000), choices.below(1000)] as const;
  const awkwardIds = ["__proto__", "constructor", "a\u2028", "é", "header:s1", "line:2", "id1~2"];
  const timestamps = ["2026-01-01T00:00:00.000Z", "2030-01-01", "1999-12-31T23:59:59Z"];
  return {
    form: choices.isTrue(0.12) ? choices.of(lineForms) : "fields",
    type,
    ...(choices.isTrue(0.3) ? { id: choices.isTrue(0.7) ? `id${choices.below(200)}` : choices.of(awkwardIds) } : {}),
    ...(choices.isTrue(0.2) ? { parent: choices.of(parents) } : {}),
    ...(choices.isTrue(0.2) ? { timestamp: choices.of(timestamps) } : {}),
    fields: {
      ...own,
      ...(choices.isTrue(0.1) ? { appendMode: "side" } : {}),
      ...randomFields(choices, extraFields, 2),
    },
  };
}

/** The texts of an entry stay so short that no number of patches makes it larger than stores take. */
const longestOfEntry = 20_000;

function randomEntry(choices: RandomChoices): EntryPlan {
  const set = randomFields(choices, entryFields, 3, () => randomValue(choices, longestOfEntry));
  const unset = choices.isTrue(0.3) ? [choices.of(entryFields)] : [];
  const times = [0, -5000, 10_000_000, "no time"] as const;
  return choices.isTrue(0.2) ? { set, unset, updatedAt: choices.of(times) } : { set, unset };
}

function randomRead(stepChoices: StepChoices): HistoryStep {
  const { choices } = stepChoices;
  const options = {
    afterSeq: choices.of([undefined, 0, 1, 5, 1000, -1, 0.5]),
    beforeSeq: choices.of([undefined, undefined, 0, 3, 8, 2.5]),
    order: choices.of([undefined, "ascending", "descending"] as const),
    limit: choices.of([undefined, undefined, 0, 1, 3]),
    payload: choices.of([undefined, "record", "source", "head"] as const),
  };
  const handle = choices.below(stepChoices.handles);
  return { kind: "read", handle, session: randomAddress(stepChoices), options: onlyGiven(options) };
}

function randomList(stepChoices: StepChoices): HistoryStep {
  const { choices } = stepChoices;
  const query = {
    state: choices.of([undefined, "active", "archived", "any"] as const),
    sort: choices.of([undefined, "updated", "key"] as const),
    limit: choices.of([undefined, 1, 2, 3]),
    agentId: choices.of([undefined, undefined, "main", "other", "none"]),
    keyPrefix: choices.of([undefined, undefined, undefined, "a", "agent:", "__", "k", "%", "_", "\u{1F600}", "A"]),
  };
  const list = { kind: "list", handle: choices.below(stepChoices.handles), query: onlyGiven(query) } as const;
  return choices.isTrue(0.3) ? { ...list, sinceMs: choices.of([0, 50]) } : list;
}

function randomForeign(stepChoices: StepChoices): HistoryStep {
  const { choices } = stepChoices;
  const session = { key: choices.below(stepChoices.keys) };
  if (choices.isTrue(0.08))
    return { kind: "transcript act", session, act: choices.of(transcriptActs), lines: 1 + choices.below(3) };
  if (choices.isTrue(0.4))
    return { kind: "edit", session, field: choices.of(["theirs1", "theirs2"]), isUnset: choices.isTrue(0.3) };
  const [line, text] = [choices.of(foreignLines), choices.of(awkwardTexts)];
  return { kind: "foreign line", session, line, text, aheadMs: choices.of([0, -1000, 100_000]) };
}

/** An option that is `undefined` is one that is absent. */
type Given<Options> = { readonly [Name in keyof Options]?: Exclude<Options[Name], undefined> };

function onlyGiven<Options extends object>(options: Options): Given<Options> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<Options>;
}
