import { type FileBlock, fileBlock, isFileReference } from "./file-blocks.ts";
import { findRecordProblem } from "./find-record-problem.ts";
import { isFields, type Fields } from "./json-object.ts";
import type {
  AssistantMessage,
  BashExecutionMessage,
  CustomRoleMessage,
  ImageBlock,
  KnownRecordType,
  RecordFields,
  SessionRecord,
  TextBlock,
  ThinkingBlock,
  ToolCallBlock,
  ToolResultMessage,
  UserMessage,
} from "./record.ts";
import type { SessionRef } from "./session-ref.ts";
import { assertStoreOptions } from "./store-option-tables.ts";
import type { ReadOptions, SessionStore } from "./session-store.ts";
import type { StoredRecord } from "./stored-records.ts";

/** Holds a value of a type that this version does not know, or whose fields are damaged. */
interface Unknown<Raw> {
  readonly type: "unknown";
  /** Holds the value as it is stored. */
  readonly raw: Raw;
}

/** Holds the known blocks of a message, and a case for all others. Text alone is one block. */
type Blocks<Block> = readonly (Block | Unknown<Readonly<Record<string, unknown>>>)[];

/** Takes the blocks of a role in place of its open content. */
type WithBlocks<Role, Block> = Omit<Role, "content"> & {
  /** Lists the blocks. */
  readonly content: Blocks<Block>;
};

/** Holds a message of a known role, with the fields of the role. */
type KnownMessage =
  | WithBlocks<UserMessage, TextBlock | ImageBlock | FileBlock>
  | WithBlocks<AssistantMessage, TextBlock | ThinkingBlock | ToolCallBlock>
  | WithBlocks<ToolResultMessage, TextBlock | ImageBlock | FileBlock>
  | WithBlocks<CustomRoleMessage, TextBlock | ImageBlock | FileBlock>
  | BashExecutionMessage;

/** Holds a message with a role that this version does not know. */
interface UnknownMessage extends Unknown<Readonly<Record<string, unknown>>> {
  readonly role: "unknown";
}

/** States where a record stands. */
interface RecordPlace {
  /** States the position in the session, from 1. */
  readonly seq: number;
  /** States the id of the record. */
  readonly recordId: string;
  /** States the id of the record that this record follows on its branch; null at a root. */
  readonly parentId: string | null;
  /** Is true for a side record, which belongs to no branch. */
  readonly side: boolean;
  /** States the writer's time in milliseconds since 1970; null when the record states none. */
  readonly tsMs: number | null;
}

/** Names the types whose fields hold no open content. */
type PlainType = Exclude<KnownRecordType, "message" | "custom_message">;

/** Holds a record with the fields of its type, and no others. */
type TypedRecord = RecordPlace &
  (
    | {
        readonly [Type in PlainType]: {
          /** States the record type that the fields belong to. */
          readonly type: Type;
        } & RecordFields[Type];
      }[PlainType]
    | ({
        /** States that an extension wrote the message. */
        readonly type: "custom_message";
      } & WithBlocks<RecordFields["custom_message"], TextBlock | ImageBlock | FileBlock>)
    | {
        /** States that the record holds a message. */
        readonly type: "message";
        /** Holds the message, typed by its role. */
        readonly message: KnownMessage | UnknownMessage;
      }
    | Unknown<SessionRecord>
  );

/** Holds a message with the fields of its role, and no others. */
type TypedMessage = RecordPlace &
  (
    | (KnownMessage & {
        /** States that the role is known. */
        readonly type: "message";
      })
    | UnknownMessage
  );

/**
 * Reads the records of a session as a closed union, in the order of their seq and of all branches. A record of a type
 * that this version does not know, or whose fields are damaged, has the type `unknown` and its original in `raw`.
 *
 * @param options as for `store.read`
 * @throws {ThroughlineError} ABORTED, and what the store throws
 * @example
 * for await (const record of recordsOf(store, ref)) if (record.type === "label") console.log(record.label);
 */
export async function* recordsOf(
  store: SessionStore,
  ref: SessionRef,
  options: ReadOptions<"record"> = {},
): AsyncGenerator<TypedRecord, void, void> {
  assertStoreOptions("read", options);
  for await (const { records } of store.read(ref, options)) for (const stored of records) yield typedRecord(stored);
}

/**
 * Reads the messages of a session as a closed union of roles, in the order of their seq and of all branches. Side records
 * are left out. `content` is always a list of blocks. An unknown role or block has the type `unknown` and its original in
 * `raw`. The messages of the current branch alone are those of `session.transcript`.
 *
 * @param options as for `store.read`
 * @throws {ThroughlineError} ABORTED, and what the store throws
 * @example
 * for await (const message of messagesOf(store, ref))
 *   if (message.role === "assistant") console.log(message.model, message.content);
 */
export async function* messagesOf(
  store: SessionStore,
  ref: SessionRef,
  options: ReadOptions<"record"> = {},
): AsyncGenerator<TypedMessage, void, void> {
  for await (const record of recordsOf(store, ref, options)) {
    if (record.side || record.type !== "message") continue;
    const { message, type, ...place } = record;
    yield message.role === "unknown" ? { ...place, ...message } : { ...place, ...message, type };
  }
}

function typedRecord({ seq, id: recordId, parentId, side, tsMs, record }: StoredRecord): TypedRecord {
  const place = { seq, recordId, parentId, side, tsMs };
  const { type } = record;
  const names = Object.hasOwn(recordFields, type) ? recordFields[type as KnownRecordType] : null;
  if (names === null || findRecordProblem(record) !== null || !hasFields(record))
    return { ...place, type: "unknown", raw: record };
  if (type === "message") return { ...place, type, message: typedMessage(record["message"] as Fields) };
  const fields = pick(record, names);
  const typed = type === "custom_message" ? { ...fields, content: blocksOf(fields["content"], type) } : fields;
  // The checks above are those of the type, and the names are its fields.
  return { ...place, type, ...typed } as TypedRecord;
}

type FieldNames<Of> = readonly (keyof Of & string)[];

/** Lists the fields of each type; the compiler finds a type without a row. */
const recordFields: { readonly [Type in KnownRecordType]: FieldNames<RecordFields[Type]> } = {
  message: ["message"],
  compaction: [
    "summary",
    "firstKeptEntryId",
    "tokensBefore",
    "tokensAfter",
    "details",
    "fromHook",
    "fromCheckpoint",
    "checkpointId",
    "messagesRemoved",
  ],
  branch_summary: ["fromId", "summary", "details"],
  custom: ["customType", "data"],
  custom_message: ["customType", "content", "display", "details"],
  model_change: ["provider", "modelId"],
  thinking_level_change: ["thinkingLevel"],
  label: ["targetId", "label"],
  session_info: ["name"],
  usage: ["kind", "usage", "provider", "model"],
  context_edit: ["targetId", "replacement"],
  leaf: ["targetId"],
  reset: ["reason", "firstKeptEntryId"],
  checkpoint: ["checkpoint"],
};

/** `findRecordProblem` lets these types pass, because no context needs their fields. */
function hasFields({ type, kind, usage, targetId, reason }: SessionRecord): boolean {
  if (type === "usage") return typeof kind === "string" && isFields(usage);
  if (type === "leaf") return targetId === null || typeof targetId === "string";
  if (type === "context_edit") return typeof targetId === "string";
  return type !== "reset" || typeof reason === "string";
}

const messageFields: Readonly<Record<KnownMessage["role"], readonly string[]>> = {
  user: ["content", "source", "timestamp"],
  assistant: ["content", "api", "provider", "model", "usage", "stopReason", "errorMessage", "recovered", "timestamp"],
  toolResult: ["toolCallId", "toolName", "content", "details", "isError", "timestamp"],
  bashExecution: [
    "command",
    "output",
    "exitCode",
    "cancelled",
    "truncated",
    "fullOutputPath",
    "excludeFromContext",
    "timestamp",
  ],
  custom: ["customType", "content", "display", "details", "timestamp"],
};

function typedMessage(message: Fields): KnownMessage | UnknownMessage {
  const { role } = message;
  if (typeof role !== "string" || !Object.hasOwn(messageFields, role))
    return { type: "unknown", role: "unknown", raw: message };
  const fields = { role, ...pick(message, messageFields[role as KnownMessage["role"]]) };
  const typed = "content" in fields ? { ...fields, content: blocksOf(fields["content"], role) } : fields;
  // `findRecordProblem` accepted the fields of the role.
  return typed as unknown as KnownMessage;
}

const blockTypes: Readonly<Record<string, readonly string[]>> = { assistant: ["text", "thinking", "toolCall"] };

function blocksOf(content: unknown, role: string): readonly Fields[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  const known = blockTypes[role] ?? ["text", "image"];
  return (content as readonly Fields[]).map((block) => {
    if (known.includes(block["type"] as string)) return block;
    return role !== "assistant" && isFileReference(block) ? { ...fileBlock(block) } : { type: "unknown", raw: block };
  });
}

function pick(fields: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(names.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])));
}
