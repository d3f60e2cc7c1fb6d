import {
  findRecordProblem,
  isFromNewerVersion,
  throughlineKind,
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  runSteps,
  type Steps,
} from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import type { Finding, StoredRecord } from "@throughline/core";
import { collectMessages, isMessageLike, type PrefixChange } from "./collect-messages.ts";
import { findBoundary, findCheckpoint } from "./find-boundary.ts";
import type { NeutralMessage } from "./neutral-message.ts";
import { OmittedRanges, type OmittedRange, type RecordFate } from "./omitted-ranges.ts";
import { collectEdits, type RecordEdit } from "./record-edits.ts";
import { walkSteps } from "./walk-branch.ts";

/** Options of `buildContext`. */
export interface BuildContextOptions {
  /** The record the context ends with; null gives an empty one. @default the last main record */
  readonly headId?: string | null;
  /**
   * Whether the newest checkpoint stands for what it covers, as a compaction would: for a session that is taken over and
   * is not to be read whole. @default false
   */
  readonly fromCheckpoint?: boolean;
}

const contextTable: OptionTable<BuildContextOptions> = {
  headId: optionKinds.orNull(optionKinds.text),
  fromCheckpoint: optionKinds.flag,
};

/** What a model would be sent, before the rules of its provider are applied. */
export interface Context {
  /** The record it ends with; null when it is empty. */
  readonly headId: string | null;
  /** The messages of the branch, oldest first. */
  readonly messages: readonly NeutralMessage[];
  /** The number of messages, as pi and OpenClaw count them. */
  readonly recordsInContext: number;
  /** The model last set or last heard on the branch. */
  readonly model: {
    /** The provider of the model. */
    readonly provider: string;
    /** The provider's id of the model. */
    readonly modelId: string;
  } | null;
  /** `off` when the branch sets none. */
  readonly thinkingLevel: string;
  /** The compaction or checkpoint whose summary comes first; null when there is none. */
  readonly summaryId: string | null;
  /** Ranges of records that are not in the context, each with its reason. */
  readonly omitted: readonly OmittedRange[];
  /** What was odd in the records, such as a missing parent. */
  readonly findings: readonly Finding[];
}

/**
 * The context at a head: the summary of the newest compaction, the records it keeps, and those after it.
 * Positions on the branch decide, never the order of ids or times.
 *
 * @param records in order of seq: a whole log, or its end as `readWindow` gives it
 * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION when a record may mean something this build cannot know
 */
export function buildContext(records: readonly StoredRecord[], options: BuildContextOptions = {}): Context {
  return runSteps(contextSteps(records, options));
}

/** What `buildContext` gives, a record a step: for sessions whose records take more than a moment. */
export function* contextSteps(records: readonly StoredRecord[], options: BuildContextOptions = {}): Steps<Context> {
  assertKnownOptions<BuildContextOptions>("buildContext", options, contextTable);
  const headId =
    options.headId === undefined ? (records.findLast((record) => !record.side)?.id ?? null) : options.headId;
  const { context } = yield* contextStateSteps(records, headId, options.fromCheckpoint ?? false);
  return context;
}

/** A context with what has to be known to go on from it. */
export interface ContextState {
  readonly context: Context;
  readonly edits: ReadonlyMap<string, RecordEdit>;
  readonly change: PrefixChange;
  readonly omitted: OmittedRanges;
}

export function* contextStateSteps(
  records: readonly StoredRecord[],
  headId: string | null,
  fromCheckpoint: boolean = false,
): Steps<ContextState> {
  const { indexes, findings } = yield* walkSteps(records, headId);
  const isWhole = indexes.length === records.length && indexes.every((index, at) => index === at);
  const path = isWhole ? records : indexes.map((index) => records[index] as StoredRecord);
  refuseNewer(records, path);
  const written = findBoundary(path, records, findings);
  const boundary = fromCheckpoint ? findCheckpoint(path, records, written) : written;
  const edits = collectEdits(path, findings);
  const collected = yield* collectMessages({ records, path, boundary, edits, findings });
  const omitted = new OmittedRanges();
  // In the order of the log; what is not on the path lies on another branch.
  const fates = isWhole ? collected.fates : fatesOf(records, indexes, collected.fates);
  for (let at = 0; at < records.length; at++) {
    omitted.add((records[at] as StoredRecord).seq, fates[at]);
    yield;
  }
  const context: Context = {
    headId: path.at(-1)?.id ?? null,
    messages: collected.messages,
    recordsInContext: collected.messages.length,
    model: lastModel(path),
    thinkingLevel: lastThinkingLevel(path),
    summaryId: boundary?.summary?.id ?? null,
    omitted: omitted.ranges(),
    findings,
  };
  return { context, edits, change: collected.change, omitted };
}

/** A record of a newer version on another branch cannot touch this one; a side record might, wherever it hangs. */
function refuseNewer(records: readonly StoredRecord[], path: readonly StoredRecord[]): void {
  // Only such records have versions of ours; nearly every other one is a message.
  const isNewer = ({ type, record }: StoredRecord): boolean => type !== "message" && isFromNewerVersion(record);
  const found = path.find(isNewer) ?? records.find((stored) => stored.side && isNewer(stored));
  if (found === undefined) return;
  const kind = throughlineKind(found.record);
  throw new ThroughlineError(
    "RECORD_FROM_NEWER_VERSION",
    `record ${found.id} has a type or version that this version of Throughline cannot read: ${kind}`,
    {
      details: { recordId: found.id, seq: found.seq, kind },
    },
  );
}

function lastThinkingLevel(path: readonly StoredRecord[]): string {
  for (let at = path.length - 1; at >= 0; at--) {
    const level = thinkingLevelOf(path[at] as StoredRecord);
    if (level !== null) return level;
  }
  return "off";
}

/** The thinking level a record sets; null when it sets none. */
export function thinkingLevelOf({ type, record }: StoredRecord): string | null {
  if (type !== "thinking_level_change" || findRecordProblem(record) !== null) return null;
  return record["thinkingLevel"] as string;
}

function lastModel(path: readonly StoredRecord[]): Context["model"] {
  for (let at = path.length - 1; at >= 0; at--) {
    const model = modelOf(path[at] as StoredRecord);
    if (model !== null) return model;
  }
  return null;
}

/** The model that a record sets or was written by; null if it names none. */
export function modelOf({ type, record }: StoredRecord): Context["model"] {
  if (type === "model_change") {
    const { provider, modelId } = record;
    if (typeof provider === "string" && typeof modelId === "string") return { provider, modelId };
  }
  const message =
    type === "message" ? (record["message"] as Readonly<Record<string, unknown>> | null | undefined) : null;
  if (message?.["role"] !== "assistant") return null;
  const { provider, model } = message;
  return typeof provider === "string" && typeof model === "string" ? { provider, modelId: model } : null;
}

function fatesOf(
  records: readonly StoredRecord[],
  indexes: readonly number[],
  pathFates: readonly RecordFate[],
): RecordFate[] {
  const fates: RecordFate[] = records.map((stored) => (isMessageLike(stored) ? "other-branch" : undefined));
  for (let at = 0; at < indexes.length; at++) fates[indexes[at] as number] = pathFates[at];
  return fates;
}
