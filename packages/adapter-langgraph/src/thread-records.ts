import type { SourcedRecord } from "@throughline/core/internal";
import { isFields, type Fields } from "@throughline/core/internal";

/**
 * Marks records that keep a message beside the conversation. It is a message of a sub-graph, or a message of another
 * program as the graph received it.
 */
export const copyFormat = "langgraph.message";
export const checkpointType = "langgraph.checkpoint";
export const valueType = "langgraph.value";
export const writeType = "langgraph.write";

/** Holds the output of a serializer: its type and text. Bytes are stored in base64. */
export interface TypedText {
  readonly type: string;
  readonly data: string;
  readonly encoding?: "base64";
}

/** Holds a run of the parent's list by start and length, or the id of the record of another message. */
export type ListPart = readonly [number, number] | string;

export type StoredChannel =
  | TypedText
  /** A separate record holds the value. */
  | { readonly record: string }
  /** The value is a list of messages: record ids, and runs of the parent's list if `depth` is above 0. */
  | { readonly list: readonly ListPart[]; readonly depth: number }
  | { readonly empty: true };

export interface StoredCheckpoint {
  readonly recordId: string;
  readonly seq: number;
  readonly ns: string;
  readonly id: string;
  readonly parentId: string | null;
  readonly v: number;
  readonly ts: string;
  readonly channelVersions: Fields;
  readonly versionsSeen: Fields;
  readonly metadata: TypedText;
  readonly channels: ReadonlyMap<string, StoredChannel>;
  /** Holds the end of the conversation at this checkpoint. */
  readonly headId: string | null;
}

export interface StoredWrite {
  readonly recordId: string;
  readonly ns: string;
  readonly checkpointId: string;
  readonly taskId: string;
  readonly taskPath: string;
  readonly idx: number;
  readonly channel: string;
  readonly value: TypedText;
}

/** Builds a key as JSON, because ids may contain any separator. */
export function checkpointKey(ns: string, id: string): string {
  return JSON.stringify([ns, id]);
}

/** Reads the checkpoint from a record; null for all other records and for imported ones. */
export function checkpointIn({ id: recordId, seq, record }: SourcedRecord): StoredCheckpoint | null {
  const { customType, data } = record;
  if (customType !== checkpointType || !isFields(data) || !isFields(data["channels"])) return null;
  const { ns, id, parentId, v, ts, channelVersions, versionsSeen, metadata, channels, headId } = data;
  if (typeof ns !== "string" || typeof id !== "string" || !isFields(channelVersions) || !isTyped(metadata)) return null;
  return {
    recordId,
    seq,
    ns,
    id,
    parentId: typeof parentId === "string" ? parentId : null,
    v: typeof v === "number" ? v : 1,
    ts: String(ts),
    channelVersions,
    versionsSeen: isFields(versionsSeen) ? versionsSeen : {},
    metadata,
    channels: new Map(Object.entries(channels)) as ReadonlyMap<string, StoredChannel>,
    headId: typeof headId === "string" ? headId : null,
  };
}

export function writeIn({ id: recordId, record }: SourcedRecord): StoredWrite | null {
  const { customType, data } = record;
  if (customType !== writeType || !isFields(data)) return null;
  const { ns, checkpointId, taskId, taskPath, idx, channel, value } = data;
  if (![ns, checkpointId, taskId, taskPath, channel].every((text) => typeof text === "string")) return null;
  if (typeof idx !== "number" || !isTyped(value)) return null;
  return {
    recordId,
    ns: ns as string,
    checkpointId: checkpointId as string,
    taskId: taskId as string,
    taskPath: taskPath as string,
    idx,
    channel: channel as string,
    value,
  };
}

export function isTyped(value: unknown): value is TypedText {
  return isFields(value) && typeof value["type"] === "string" && typeof value["data"] === "string";
}

/** Returns the ids of the messages that a record beside the conversation repeats. */
export function messageIdsIn({ data }: SourcedRecord["record"]): readonly string[] {
  const ids = isFields(data) ? data["messageIds"] : null;
  return Array.isArray(ids) ? (ids as readonly unknown[]).filter((id) => typeof id === "string") : [];
}
