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

/** What every draft may state: `id`, `parentId` and `timestamp` are filled in where they are absent. */
type DraftFrame<Type extends string> = {
  /** The record's type. */
  readonly type: Type;
  /** The record's id, unique in its session. @default a new one */
  readonly id?: string;
  /** The record that this one follows; null begins a new root. @default the head at the moment of the append */
  readonly parentId?: string | null;
  /** ISO 8601 with milliseconds and Z. @default now */
  readonly timestamp?: string;
};

/** A provider's reply as it is stored. `responseId` is the id that the provider gave it. */
interface NewAssistantMessage extends AssistantMessage {
  /** The provider's id of the reply. */
  readonly responseId?: string;
}

/** Instructions in the middle of a conversation. The system prompt of a request is no record. */
interface SystemMessage {
  /** `system`, or `developer` as newer APIs of OpenAI name it. */
  readonly role: "system" | "developer";
  /** The instructions. */
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  /** When they were written, in milliseconds since 1970. */
  readonly timestamp?: number;
}

/** A message that a program writes: of a known role, without fields that no reader knows. */
export type NewMessage =
  | UserMessage
  | NewAssistantMessage
  | ToolResultMessage
  | SystemMessage
  | BashExecutionMessage
  | CustomRoleMessage;

/** A new record of a type that is known. A misspelt field does not compile. */
type KnownDraft = {
  readonly [Type in KnownRecordType]: DraftFrame<Type> &
    (Type extends "message" ? { readonly message: NewMessage } : RecordFields[Type]);
}[KnownRecordType];

/** A new record of a program's own type, which holds a dot (`acme.ticket`). Any fields of JSON; no model sees it. */
type OwnDraft = DraftFrame<`${string}.${string}`> & { readonly [field: string]: unknown };

/** A new record as programs write it. A misspelt type or field of a known record does not compile. */
export type SessionDraft = KnownDraft | OwnDraft;

/** A new message as a record. */
export type MessageDraft = DraftFrame<"message"> & {
  /** The message, by its role. */
  readonly message: NewMessage;
};

/** A reply as a record. */
export type ReplyDraft = DraftFrame<"message"> & {
  /** The reply. */
  readonly message: NewAssistantMessage;
};

/** What a user says, or what a tool gives back: text, or blocks of text, images and kinds of a program's own. */
type DraftContent = string | readonly (TextBlock | ImageBlock | UnknownBlock)[];

/**
 * The record of what a user says.
 * @example await turn.append([userMessage("What is in this folder?")]);
 */
export function userMessage(content: DraftContent): MessageDraft {
  return { type: "message", message: { role: "user", content } };
}

/**
 * The record of what a model answered. For a provider's own reply, `recordFromReply` of `@throughline/history/<provider>`
 * fills in the fields.
 * @param content Text, or blocks of text, thinking and tool calls.
 * @param fields `model`, `provider`, `api`, `usage`, `stopReason` and the like. @default a reply that ended by itself
 * @example assistantMessage("Hello!", { model: "claude-sonnet-4-5", provider: "anthropic" })
 */
export function assistantMessage(
  content: AssistantMessage["content"],
  fields: Omit<NewAssistantMessage, "role" | "content"> = {},
): ReplyDraft {
  return { type: "message", message: { role: "assistant", content, stopReason: "stop", ...fields } };
}

/**
 * The calls of a reply, to run and to answer with `toolResult`. Their ids and arguments are those of the record: a call
 * without an id has got one, and the arguments are parsed. Those that are no JSON object are in `partialJson`.
 * @example
 * const results = toolCalls(reply).map(async (call) => toolResult(call, await run(call.name, call.arguments)));
 */
export function toolCalls({ message: { content } }: ReplyDraft): readonly ToolCallBlock[] {
  if (typeof content === "string") return [];
  return content.filter((block): block is ToolCallBlock => block.type === "toolCall");
}

/**
 * The record of a tool's result.
 * @param call The call that it answers: its id, and the tool's name where it is known.
 * @param fields `isError`, and `details` for people and programs, which no model sees.
 * @example toolResult(call, "3 files", { details: { files: 3 } })
 */
export function toolResult(
  call: { readonly id: string; readonly name?: string },
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
 * A record for a program's own data. No model sees it.
 * @param customType Whose and what it is, such as `acme.ticket`. Names that begin with `throughline.` are reserved.
 * @param data Any JSON.
 */
export function customRecord(
  customType: string,
  data: unknown,
): DraftFrame<"custom"> & { readonly customType: string; readonly data: unknown } {
  return { type: "custom", customType, data };
}
