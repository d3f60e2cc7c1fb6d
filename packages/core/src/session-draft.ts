import type {
  AssistantMessage,
  BashExecutionMessage,
  CustomRoleMessage,
  ImageBlock,
  KnownRecordType,
  RecordFields,
  TextBlock,
  ToolCallBlock,
  ToolResultMessage,
  UnknownBlock,
  UserMessage,
} from "./record.ts";

/** An append fills in an absent `id`, `parentId` or `timestamp`. */
type DraftFrame<Type extends string> = {
  /** States the record's type. */
  readonly type: Type;
  /** States the record's id, unique in its session. @default a new one */
  readonly id?: string;
  /**
   * States the record that this record follows; null starts a new root.
   * @default the head at the moment of the append
   */
  readonly parentId?: string | null;
  /** States the time as ISO 8601 with milliseconds and Z. @default now */
  readonly timestamp?: string;
};

/** Holds a provider's reply as it is stored. */
interface NewAssistantMessage extends AssistantMessage {
  /** States the provider's id of the reply. */
  readonly responseId?: string | undefined;
}

/** Holds instructions in the middle of a conversation. The system prompt of a request is not a record. */
interface SystemMessage {
  /** States the role: `system`, or `developer` in newer APIs of OpenAI. */
  readonly role: "system" | "developer";
  /** Holds the instructions. */
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  /** States when the instructions were written, in milliseconds since 1970. */
  readonly timestamp?: number;
}

/** Holds a message that a program writes, with a known role and without fields that no reader knows. */
export type NewMessage =
  | UserMessage
  | NewAssistantMessage
  | ToolResultMessage
  | SystemMessage
  | BashExecutionMessage
  | CustomRoleMessage;

/** Holds a new record of a known type. A misspelled field does not compile. */
type KnownDraft = {
  readonly [Type in KnownRecordType]: DraftFrame<Type> &
    (Type extends "message" ? { readonly message: NewMessage } : RecordFields[Type]);
}[KnownRecordType];

/**
 * Holds a new record of a program's own type, whose name contains a dot (`acme.ticket`). It may have any fields of
 * JSON, and no model sees it.
 */
type OwnDraft = DraftFrame<`${string}.${string}`> & { readonly [field: string]: unknown };

/** Holds a new record as programs write it. A misspelled type or field of a known record does not compile. */
export type SessionDraft = KnownDraft | OwnDraft;

/** Holds a new message as a record. */
export type MessageDraft = DraftFrame<"message"> & {
  /** Holds the message, typed by its role. */
  readonly message: NewMessage;
};

/** Holds a reply as a record. */
export type ReplyDraft = DraftFrame<"message"> & {
  /** Holds the reply. */
  readonly message: NewAssistantMessage;
};

/** Holds content of a user or a tool: text, or blocks of text, images and a program's own types. */
type DraftContent = string | readonly (TextBlock | ImageBlock | UnknownBlock)[];

/**
 * Creates the record of a user's message.
 * @example await turn.append([userMessage("What is in this folder?")]);
 */
export function userMessage(content: DraftContent): MessageDraft {
  return { type: "message", message: { role: "user", content } };
}

/**
 * Creates the record of a model's answer. For a provider's own reply, `recordFromReply` of
 * `@throughline/history/<provider>` fills in the fields.
 * @param content Text, or blocks of text, thinking and tool calls.
 * @param fields `model`, `provider`, `api`, `usage`, `stopReason` and the like. @default a reply that ended by itself
 * @example assistantMessage("Hello!", { model: "claude-sonnet-5", provider: "anthropic" })
 */
export function assistantMessage(
  content: AssistantMessage["content"],
  fields: Omit<NewAssistantMessage, "role" | "content"> = {},
): ReplyDraft {
  return { type: "message", message: { role: "assistant", content, stopReason: "stop", ...fields } };
}

/**
 * Returns the calls of a reply, to run and to answer with `toolResult`. Ids and arguments are those of the record: a
 * call without an id has received one, and the arguments are parsed. Arguments that are no JSON object are in
 * `partialJson`.
 * @example
 * const results = toolCalls(reply).map(async (call) => toolResult(call, await run(call.name, call.arguments)));
 */
export function toolCalls({ message: { content } }: ReplyDraft): readonly ToolCallBlock[] {
  if (typeof content === "string") return [];
  return content.filter((block): block is ToolCallBlock => block.type === "toolCall");
}

/**
 * Creates the record of a tool's result.
 * @param call The call that it answers: its id, and the tool's name where it is known.
 * @param fields `isError`, and `details` for people and programs, which no model sees.
 * @example toolResult(call, "3 files", { details: { files: 3 } })
 */
export function toolResult(
  call: { readonly id: string; readonly name?: string | undefined },
  content: DraftContent,
  fields: Pick<ToolResultMessage, "isError" | "details"> = {},
): MessageDraft {
  const named = call.name === undefined ? {} : { toolName: call.name };
  const message: ToolResultMessage = {
    role: "toolResult",
    toolCallId: call.id,
    ...named,
    content,
    isError: false,
    ...fields,
  };
  return { type: "message", message };
}

/**
 * Creates a record for a program's own data, which no model sees.
 * @param customType Names the owner and the type of the data, such as `acme.ticket`. Names that begin with
 * `throughline.` are reserved.
 * @param data Any JSON.
 */
export function customRecord(
  customType: string,
  data: unknown,
): DraftFrame<"custom"> & { readonly customType: string; readonly data: unknown } {
  return { type: "custom", customType, data };
}
