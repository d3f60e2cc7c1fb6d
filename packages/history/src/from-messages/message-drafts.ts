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

export interface MessageOrigin {
  readonly api: string;
  /** Names the provider in records if the caller gives none. */
  readonly provider: string;
}

export class MessageDrafts {
  readonly reader: MessageReader = new MessageReader("recordsFromMessages");
  readonly calls: CallBook = new CallBook();
  readonly list: MessageDraft[] = [];
  readonly #identity: Pick<AssistantMessage, "api" | "provider" | "model">;

  /** Checks the options. @throws {ThroughlineError} INPUT_INVALID */
  constructor({ api, provider }: MessageOrigin, options: RecordsFromMessagesOptions) {
    assertKnownOptions<RecordsFromMessagesOptions>("recordsFromMessages", options, messagesTable);
    const { model } = options;
    this.#identity = { api, provider: options.provider ?? provider, ...(model === undefined ? {} : { model }) };
  }

  user(blocks: readonly UserBlock[], more: Readonly<Record<string, unknown>> = {}): void {
    this.calls.close();
    this.list.push({ type: "message", message: { role: "user", content: plainContent(blocks), ...more } });
  }

  system(role: "system" | "developer", blocks: readonly UserBlock[]): void {
    this.list.push({ type: "message", message: { role, content: plainContent(blocks) } });
  }

  /** Messages do not state why a reply ended, so the calls decide: `toolUse` with calls, `stop` without. */
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

export interface ReplyEnd {
  readonly stopReason: "stop" | "length" | "toolUse" | "error";
  readonly errorMessage?: string;
}

export interface ReplyEnvelope {
  readonly content: readonly ReplyBlock[];
  readonly end: ReplyEnd;
  readonly responseId: unknown;
  readonly responseModel: unknown;
  /** Holds the usage in the provider's own fields. */
  readonly usage: unknown;
  /** Counts the reasoning tokens if the provider states them outside the usage's standard fields. */
  readonly reasoningTokens?: number | null;
}

/** Checks the options of `recordFromReply`. @throws {ThroughlineError} INPUT_INVALID */
export function assertReplyOptions(options: unknown): void {
  assertKnownOptions<RecordFromReplyOptions>("recordFromReply", options, replyTable);
}

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
  // Some servers report "stop" although the reply has calls. Calls need results, so the record states `toolUse`.
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

/** Results refer to calls by id. A call without an id, or with an id that another call has, gets a generated id. */
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
