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
import { markWaitingReply } from "./waiting-reply.ts";
import { walkSteps } from "./walk-branch.ts";

/** Configures `buildContext`. */
export interface BuildContextOptions {
  /** Sets the record with which the context ends; null gives an empty context. @default the last main record */
  readonly headId?: string | null | undefined;
  /**
   * Lets the newest checkpoint replace the records that it covers, like a compaction does. Use it when another program
   * continues a long session without reading all of it. @default false
   */
  readonly fromCheckpoint?: boolean | undefined;
}

const contextTable: OptionTable<BuildContextOptions> = {
  headId: optionKinds.orNull(optionKinds.text),
  fromCheckpoint: optionKinds.flag,
};

/** Holds the messages that a model would receive, before the rules of its provider apply. */
export interface Context {
  /** States the record with which the context ends; null when the context is empty. */
  readonly headId: string | null;
  /** Holds the messages of the branch, oldest first. */
  readonly messages: readonly NeutralMessage[];
  /** Counts the messages in the way of pi and OpenClaw. */
  readonly recordsInContext: number;
  /** Names the model that the branch last set, or that last replied. Null when the branch names none. */
  readonly model: {
    /** States the provider of the model. */
    readonly provider: string;
    /** States the provider's id of the model. */
    readonly modelId: string;
  } | null;
  /** States the thinking level; `off` when the branch sets none. */
  readonly thinkingLevel: string;
  /** States the compaction or checkpoint whose summary comes first; null without a summary. */
  readonly summaryId: string | null;
  /** Lists the ranges of records that are not in the context, each with its reason. */
  readonly omitted: readonly OmittedRange[];
  /** Lists irregularities of the records, such as a missing parent. */
  readonly findings: readonly Finding[];
}

/**
 * Builds the context at a head: the summary of the newest compaction, the records that it keeps, and the records after
 * it. Positions on the branch decide, never the order of ids or times.
 *
 * @param records in order of seq: a whole log, or its end as `readWindow` gives it
 * @throws {ThroughlineError} RECORD_FROM_NEWER_VERSION when a record may mean something this build cannot know
 */
export function buildContext(records: readonly StoredRecord[], options: BuildContextOptions = {}): Context {
  return runSteps(contextSteps(records, options));
}

/**
 * Builds the same context as `buildContext`, one record per step, so that a large session does not block the process.
 */
export function* contextSteps(records: readonly StoredRecord[], options: BuildContextOptions = {}): Steps<Context> {
  assertKnownOptions<BuildContextOptions>("buildContext", options, contextTable);
  const headId =
    options.headId === undefined ? (records.findLast((record) => !record.side)?.id ?? null) : options.headId;
  const { context } = yield* contextStateSteps(records, headId, options.fromCheckpoint ?? false);
  return context;
}

export interface ContextState {
  readonly context: Context;
  readonly edits: ReadonlyMap<string, RecordEdit>;
  readonly change: PrefixChange;
  readonly omitted: OmittedRanges;
  /** Is true when the newest reply waits. Any further record may end the wait. */
  readonly isWaiting: boolean;
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
  // Fates follow the order of the log. A record that is not on the path belongs to another branch.
  const fates = isWhole ? collected.fates : fatesOf(records, indexes, collected.fates);
  for (let at = 0; at < records.length; at++) {
    omitted.add((records[at] as StoredRecord).seq, fates[at]);
    yield;
  }
  const messages = markWaitingReply(collected.messages, records);
  const context: Context = {
    headId: path.at(-1)?.id ?? null,
    messages,
    recordsInContext: messages.length,
    model: lastModel(path),
    thinkingLevel: lastThinkingLevel(path),
    summaryId: boundary?.summary?.id ?? null,
    omitted: omitted.ranges(),
    findings,
  };
  return { context, edits, change: collected.change, omitted, isWaiting: messages !== collected.messages };
}

/**
 * Rejects unreadable records of a newer version. Such a record on another branch cannot affect this branch, but a side
 * record may affect any branch.
 */
function refuseNewer(records: readonly StoredRecord[], path: readonly StoredRecord[]): void {
  // Only other types carry a version of Throughline, and most records are messages, so this check saves time.
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

/** Returns the model that a record sets, or the model that wrote it. Returns null if the record names none. */
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
