import type { Fields } from "@throughline/core/internal";
import {
  providerMappings,
  type AssistantTurn,
  type ProviderRules,
  type ReplayResult,
  type ReplaySource,
  type ReplayTurn,
  type ReplayUserBlock,
} from "@throughline/history/internal";
import type { TurnWriter } from "../live/live-format.ts";
import { documentWriter } from "../document-writer.ts";
import type { FormatWriter, WriteOptions, WrittenSession } from "../format-writer.ts";
import { timeOf, WrittenConversation, type TurnOrigin } from "../write-conversation.ts";
import { LossLog } from "../write-losses.ts";

/** The writer renders the messages that a model would get now, in the form that `validateUIMessages` accepts. */
export const uiMessageWriter: FormatWriter = documentWriter({ head: "[", tail: "\n]\n" }, uiMessagesOf);

/** The undefined values mark steps without a message, so that a caller can pause during a long conversation. */
export function* uiMessagesOf(session: WrittenSession, { onLoss }: WriteOptions): Generator<Fields | undefined> {
  // Thinking is shown to people and not sent to a model, so it stays whichever model wrote it.
  const losses = new LossLog(onLoss, new Set(["thinking-removed", "empty-message-removed"]));
  const conversation = new WrittenConversation(session, uiMessageRules, losses);
  const list = new UiMessageList(session.sessionId, conversation, losses);
  for (const turn of conversation.context()) {
    if (turn !== undefined) yield* list.turn(turn);
    // A reply of many turns becomes one message, so a pause is due after each turn.
    yield;
  }
  yield* list.close();
  if (session.writtenSeq !== undefined) return;
  for (const recordId of conversation.unshownThinking()) losses.add({ what: "left-out", kind: "thinking", recordId });
}

const anyCharacter = /(?!)/g;
const { rules: chatRules } = providerMappings.openai({});

/** The messages do not go to a provider, so ids, names and links stay unchanged. */
export const uiMessageRules: ProviderRules = {
  ...chatRules,
  callIds: { forbidden: anyCharacter, maxLength: Number.MAX_SAFE_INTEGER },
  toolNames: { forbidden: anyCharacter, maxLength: Number.MAX_SAFE_INTEGER },
  imageLinks: true,
  fileLinks: true,
  trailingAssistant: () => "keep",
};

/** The message stays open, because later results complete its calls. */
interface OpenMessage {
  readonly id: string;
  readonly metadata: Fields;
  readonly parts: Fields[];
}

/** Null means that no program stored a message that begins with the record. */
export type MessageNames = (recordId: string) => { readonly id?: string; readonly metadata?: Fields } | null;

export class UiMessageList implements TurnWriter {
  readonly #sessionId: string;
  readonly #losses: LossLog;
  readonly #conversation: WrittenConversation;
  #open: OpenMessage | null = null;
  /** The time is that of the last written record; null before a record states one. */
  #createdAt: string | null = null;
  #madeCount = 0;
  readonly #names: MessageNames;

  constructor(sessionId: string, conversation: WrittenConversation, losses: LossLog, names: MessageNames = () => null) {
    this.#names = names;
    this.#sessionId = sessionId;
    this.#losses = losses;
    this.#conversation = conversation;
  }

  /** A turn that begins a new message completes the open one, so both are returned. */
  turn(turn: ReplayTurn): readonly Fields[] {
    const origin = this.#conversation.originOf(turn.recordId);
    this.#createdAt = timeOf(origin?.stored, this.#createdAt ?? "") || null;
    if (turn.role === "assistant") {
      this.#reply(turn, origin);
      return [];
    }
    if (turn.role === "user") for (const result of turn.results) this.#result(result);
    if (turn.role === "user" && turn.blocks.length === 0) return [];
    const role = origin?.message?.role;
    if (turn.role === "user" && role !== undefined && role !== "user")
      this.#losses.tell(
        "changed",
        role === "compactionSummary" ? "summary as user text" : `${role} as user text`,
        origin,
      );
    const parts = turn.role === "system" ? [{ type: "text", text: turn.text }] : turn.blocks.flatMap(partOf);
    const named = turn.recordId === null ? null : this.#names(turn.recordId);
    const stated = named?.metadata ?? this.#withTime({});
    return [...this.close(), this.#message(named?.id ?? turn.recordId, turn.role, parts, stated)];
  }

  close(): readonly Fields[] {
    const open = this.#open;
    this.#open = null;
    return open === null ? [] : [this.#message(open.id, "assistant", open.parts, open.metadata)];
  }

  #reply(turn: AssistantTurn, origin: TurnOrigin | null): void {
    const { model = null, provider = null } = origin?.message?.role === "assistant" ? origin.message : {};
    const author = { ...(model === null ? {} : { model }), ...(provider === null ? {} : { provider }) };
    const named = turn.recordId === null ? null : this.#names(turn.recordId);
    const open = (this.#open ??= {
      id: named?.id ?? turn.recordId ?? this.#madeId(),
      metadata: named === null ? this.#withTime(author) : (named.metadata ?? {}),
      parts: [],
    });
    open.parts.push({ type: "step-start" });
    for (const { thinking, signature, redacted } of this.#conversation.thinkingOf(turn)) {
      const own = redacted ? { redactedData: signature } : { signature };
      const isSigned = signature !== null && provider === "anthropic";
      if (!isSigned && signature !== null) this.#losses.tell("left-out", "signature of thinking", origin);
      open.parts.push({
        type: "reasoning",
        text: thinking,
        ...(isSigned ? { providerMetadata: { anthropic: own } } : {}),
      });
    }
    for (const block of turn.blocks) {
      if (block.type === "text") open.parts.push({ type: "text", text: block.text, state: "done" });
      else if (block.type === "toolCall") {
        const { id: toolCallId, name: toolName, arguments: input } = block;
        open.parts.push({ type: "dynamic-tool", toolName, toolCallId, state: "input-available", input });
      }
    }
  }

  #result(result: ReplayResult): void {
    const { callId, isError, content } = result;
    const origin = this.#conversation.originOf(result.recordId);
    const images = content.filter(({ type }) => type !== "text");
    if (images.length > 0) this.#losses.tell("left-out", "image of a result", origin);
    const text = content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
    const answered = isError ? { state: "output-error", errorText: text } : { state: "output-available", output: text };
    const parts = this.#open?.parts ?? [];
    const at = parts.findLastIndex(({ toolCallId }) => toolCallId === callId);
    const part = parts[at];
    if (part !== undefined) parts[at] = { ...part, ...answered };
    else this.#losses.tell("left-out", "result of a call that is in the file", origin);
  }

  #message(id: string | null, role: string, parts: readonly Fields[], metadata: Fields): Fields {
    const stated = Object.keys(metadata).length === 0 ? {} : { metadata };
    return { id: id ?? this.#madeId(), role, ...stated, parts };
  }

  #withTime(metadata: Fields): Fields {
    return this.#createdAt === null ? metadata : { createdAt: this.#createdAt, ...metadata };
  }

  #madeId(): string {
    this.#madeCount += 1;
    return `${this.#sessionId}-made-${this.#madeCount}`;
  }
}

function partOf(block: ReplayUserBlock): readonly Fields[] {
  if (block.type === "text") return [{ type: "text", text: block.text }];
  if (block.type === "raw") return [];
  const { source } = block;
  const named = block.type === "file" && block.name !== null ? { filename: block.name } : {};
  return [{ type: "file", mediaType: mediaTypeOf(source, block.type), url: urlOf(source), ...named }];
}

function urlOf(source: ReplaySource): string {
  return source.type === "url" ? source.url : `data:${source.media_type};base64,${source.data}`;
}

/** The type of a linked file is unknown before a request, so a general type is stated. */
function mediaTypeOf(source: ReplaySource, kind: "image" | "file"): string {
  if (source.type === "base64") return source.media_type;
  return kind === "image" ? "image/*" : "application/pdf";
}
