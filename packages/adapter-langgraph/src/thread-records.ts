import type { SourcedRecord } from "@throughline/core/internal";
import { isFields, type Fields } from "@throughline/core/internal";

/** Of records that keep a message beside the conversation: of a sub-graph, or as the graph was given another program's. */
export const copyFormat = "langgraph.message";
export const checkpointType = "langgraph.checkpoint";
export const valueType = "langgraph.value";
export const writeType = "langgraph.write";

/** What a serializer made: its type, and the text, in base64 where it is bytes. */
export interface TypedText {
  readonly type: string;
  readonly data: string;
  readonly encoding?: "base64";
}

/** A run of the messages that the parent's list has, by place and length, or the record of another message. */
export type ListPart = readonly [number, number] | string;

/** What a checkpoint says of a channel. */
export type StoredChannel =
  | TypedText
  /** Kept by a record of its own. */
  | { readonly record: string }
  /** A list of messages: parts of the parent's list, if `depth` is above 0, and records. */
  | { readonly list: readonly ListPart[]; readonly depth: number }
  /** The channel has no value any more. */
  | { readonly empty: true };

/** A checkpoint as a record has it. */
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
  /** The end of the conversation at this checkpoint. */
  readonly headId: string | null;
}

/** A write that waits at a checkpoint. */
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

/** Names a checkpoint: ids may hold anything. */
export function checkpointKey(ns: string, id: string): string {
  return JSON.stringify([ns, id]);
}

/** The checkpoint that a record has; null for other records, and for those of an import. */
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

/** The write that a record has. */
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

/** Ids of the messages that a record beside the conversation repeats. */
export function messageIdsIn({ data }: SourcedRecord["record"]): readonly string[] {
  const ids = isFields(data) ? data["messageIds"] : null;
  return Array.isArray(ids) ? (ids as readonly unknown[]).filter((id) => typeof id === "string") : [];
}
