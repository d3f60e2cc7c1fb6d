import type { AssistantMessage, ToolCallBlock } from "@throughline/core";
import type { MessageDraft, ReplyDraft } from "@throughline/core/internal";
import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  recordUsage,
  systemRandom,
} from "@throughline/core/internal";
import { CallBook } from "./call-book.ts";
import { plainContent, type ReplyBlock, type UserBlock } from "./draft-blocks.ts";
import type { RecordFromReplyOptions, RecordsFromMessagesOptions } from "./options.ts";
import { MessageReader } from "./message-reader.ts";

const { filledText, callback } = optionKinds;

const messagesTable: OptionTable<RecordsFromMessagesOptions> = { model: filledText, provider: filledText };
const replyTable: OptionTable<RecordFromReplyOptions> = { ...messagesTable, nextCallId: callback };

/** Whose messages are read. */
export interface MessageOrigin {
  /** The wire format by the name records know it by. */
  readonly api: string;
  /** The provider's name in records where the caller gives none. */
  readonly provider: string;
}

/** The drafts of a conversation, in the order they are added. */
export class MessageDrafts {
  readonly reader: MessageReader = new MessageReader("recordsFromMessages");
  readonly calls: CallBook = new CallBook();
  readonly list: MessageDraft[] = [];
  readonly #identity: Pick<AssistantMessage, "api" | "provider" | "model">;

  /** @throws {ThroughlineError} INPUT_INVALID */
  constructor({ api, provider }: MessageOrigin, options: RecordsFromMessagesOptions) {
    assertKnownOptions<RecordsFromMessagesOptions>("recordsFromMessages", options, messagesTable);
    const { model } = options;
    this.#identity = { api, provider: options.provider ?? provider, ...(model === undefined ? {} : { model }) };
  }

  /** Other fields of the message, such as a name, stay beside its content. */
  user(blocks: readonly UserBlock[], more: Readonly<Record<string, unknown>> = {}): void {
    this.calls.close();
    this.list.push({ type: "message", message: { role: "user", content: plainContent(blocks), ...more } });
  }

  system(role: "system" | "developer", blocks: readonly UserBlock[]): void {
    this.list.push({ type: "message", message: { role, content: plainContent(blocks) } });
  }

  /** Messages do not say why a reply ended: it called tools, or it was over. */
  reply(content: readonly ReplyBlock[]): void {
    const calls = content.filter((block) => block.type === "toolCall") as readonly ToolCallBlock[];
    for (const { id, name } of calls) this.calls.add(id, name);
    const stopReason = calls.length > 0 ? "toolUse" : "stop";
    const message: AssistantMessage = { role: "assistant", content, ...this.#identity, stopReason };
    this.list.push({ type: "message", message });
  }

  result(toolCallId: string, blocks: readonly UserBlock[], isError: boolean, name: string | null = null): void {
    const toolName = name ?? this.calls.nameOf(toolCallId);
    this.calls.answer(toolCallId);
    const named = toolName === null ? {} : { toolName };
    const content = plainContent(blocks);
    this.list.push({ type: "message", message: { role: "toolResult", toolCallId, ...named, content, isError } });
  }
}

/** How a reply ended, in the words of a record. */
export interface ReplyEnd {
  readonly stopReason: "stop" | "length" | "toolUse" | "error";
  readonly errorMessage?: string;
}

/** What a provider said around the content of a reply. */
export interface ReplyEnvelope {
  readonly content: readonly ReplyBlock[];
  readonly end: ReplyEnd;
  readonly responseId: unknown;
  readonly responseModel: unknown;
  /** In the provider's own fields. */
  readonly usage: unknown;
  /** Where the usage states it apart. */
  readonly reasoningTokens?: number | null;
}

/** @throws {ThroughlineError} INPUT_INVALID */
export function assertReplyOptions(options: unknown): void {
  assertKnownOptions<RecordFromReplyOptions>("recordFromReply", options, replyTable);
}

/** The record of a reply. */
export function replyDraft(
  origin: MessageOrigin,
  envelope: ReplyEnvelope,
  options: RecordFromReplyOptions,
): ReplyDraft {
  const { end, responseId } = envelope;
  const responseModel = filled(envelope.responseModel);
  const model = options.model ?? responseModel;
  const usage = recordUsage(envelope.usage, envelope.reasoningTokens ?? null);
  const content = withOwnIds(envelope.content, options.nextCallId ?? randomCallId);
  // Some servers say "stop" beside calls, and a call is to be answered whatever they say.
  const isCalling = end.stopReason === "stop" && content.some(({ type }) => type === "toolCall");
  const message: AssistantMessage & { readonly responseId?: string; readonly responseModel?: string } = {
    role: "assistant",
    content,
    api: origin.api,
    provider: options.provider ?? origin.provider,
    ...(model === null ? {} : { model }),
    ...(usage === null ? {} : { usage }),
    stopReason: isCalling ? "toolUse" : end.stopReason,
    ...(end.errorMessage === undefined ? {} : { errorMessage: end.errorMessage }),
    ...(filled(responseId) === null ? {} : { responseId: String(responseId) }),
    ...(responseModel === null || responseModel === model ? {} : { responseModel }),
  };
  return { type: "message", message };
}

/** Results belong to calls by the ids of the calls. A call without an id, or with that of another, gets one of ours. */
function withOwnIds(content: readonly ReplyBlock[], nextCallId: () => string): readonly ReplyBlock[] {
  const used = new Set<unknown>();
  return content.map((block) => {
    if (block.type !== "toolCall") return block;
    const { id } = block as { readonly id: string };
    const own = id === "" || used.has(id) ? nextCallId() : id;
    used.add(own);
    return own === id ? block : { ...block, id: own };
  });
}

function randomCallId(): string {
  return `call_${systemRandom.uuid().replaceAll("-", "").slice(0, 24)}`;
}

function filled(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
