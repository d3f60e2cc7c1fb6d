import type { AssistantMessage, ChatDelta, ToolCallBlock, Usage } from "@throughline/core";
import type { UnknownBlock } from "@throughline/core/internal";
import { type Fields, isFields, recordUsage, systemRandom } from "@throughline/core/internal";
import { callIds } from "./call-ids.ts";
import { GrowingJson, GrowingText } from "./growing-text.ts";
import { parseFields, textOr } from "./wire-fields.ts";

/** Who answers, as the record of the answer says it. */
export interface ReplyIdentity {
  /** The wire format by the name records know it by. */
  readonly api: string;
  readonly provider: string;
  readonly model: string;
}

/** How an answer ended, in the words of a record. */
export interface ReplyEnd {
  readonly stopReason: "stop" | "length" | "toolUse" | "error" | "aborted";
  readonly errorMessage?: string;
}

interface TextDraft {
  readonly type: "text";
  readonly text: GrowingText;
  readonly extra: Record<string, unknown>;
}

interface ThinkingDraft {
  readonly type: "thinking";
  readonly text: GrowingText;
  signature: string | null;
  isRedacted: boolean;
}

interface CallDraft {
  readonly type: "toolCall";
  id: string;
  name: string;
  json: GrowingJson;
  input: Fields | null;
  isEnded: boolean;
  /** Its id is one that no other call of the answer has. */
  hasOwnId: boolean;
}

/** What a piece of a streamed call says of it; empty for what it does not say. */
export interface CallPiece {
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
}

/** A block of the provider's own; `json` is the input of one that grows. */
interface RawDraft {
  readonly type: "raw";
  readonly block: Fields;
  readonly json: GrowingText;
}

type BlockDraft = TextDraft | ThinkingDraft | CallDraft | RawDraft;

/** Some ten times what the longest answers have. */
export const maxReplyCharacters: number = 4 * 1024 * 1024;
const blockCharacters = 100;

/** The place of a block in the answer, in the provider's own count. Blocks stand in the order of their first piece. */
export type BlockKey = string | number;

/** An answer as it arrives, whole or in pieces. What it holds at any time can be made a record of. */
export class ReplyDraft {
  readonly identity: ReplyIdentity;
  readonly #onDelta: ((delta: ChatDelta) => void) | null;
  readonly #nextCallId: () => string;
  readonly #blocks = new Map<BlockKey, BlockDraft>();
  /** Calls by the number that the server gives them, which may be the same for all. */
  readonly #numbered = new Map<number, readonly string[]>();
  readonly #callIds = new Set<string>();
  #characters = 0;
  /** The provider's id of the answer. */
  responseId: string | null = null;
  /** The model that answered, where the provider names it. */
  responseModel: string | null = null;
  /** Why the answer ended, in the provider's word; null while it has not. */
  stopReason: string | null = null;
  /** In the provider's own fields. */
  usage: Fields | null = null;
  /** Part of the output; null where the usage's reader finds it itself. */
  reasoningTokens: number | null = null;

  constructor(
    identity: ReplyIdentity,
    onDelta: ((delta: ChatDelta) => void) | null,
    nextCallId: () => string = callIds(systemRandom),
  ) {
    this.identity = identity;
    this.#onDelta = onDelta;
    this.#nextCallId = nextCallId;
  }

  /** Pieces are as the server wrote them: what should be text and is none says nothing. */
  text(key: BlockKey, given: unknown): void {
    const piece = textOr(given, "");
    this.#textAt(key).text.add(this.#counted(piece));
    if (piece !== "") this.#onDelta?.({ type: "text", text: piece });
  }

  /** A text that came whole, unless its pieces came before. */
  wholeText(key: BlockKey, text: string): void {
    if (this.#textAt(key).text.length === 0) this.text(key, text);
  }

  /** Fields of the provider's that stand beside a text, such as citations. */
  textField(key: BlockKey, name: string, value: unknown): void {
    this.#count(value);
    this.#textAt(key).extra[name] = value;
  }

  /** Adds to a list beside a text. */
  textItem(key: BlockKey, name: string, item: unknown): void {
    this.#count(item);
    const { extra } = this.#textAt(key);
    const list = extra[name];
    if (Array.isArray(list)) list.push(item);
    else extra[name] = [item];
  }

  thinking(key: BlockKey, given: unknown): void {
    const piece = textOr(given, "");
    this.#thinkingAt(key).text.add(this.#counted(piece));
    if (piece !== "") this.#onDelta?.({ type: "thinking", text: piece });
  }

  /** What the thinking has to come back with. */
  sign(key: BlockKey, signature: unknown, isRedacted = false): void {
    const block = this.#thinkingAt(key);
    if (typeof signature !== "string") return;
    block.signature = this.#counted(signature);
    block.isRedacted = isRedacted;
  }

  /** A call begins, or says more of itself; what is empty says nothing, and the first id stays. */
  call(key: BlockKey, id: string, name: string): void {
    const block = this.#callAt(key);
    if (block.id === "") block.id = this.#counted(id);
    if (name !== "") block.name = this.#counted(name);
  }

  /** The key of the call that a piece belongs to: the newest of that number, unless the piece begins another one. */
  numberedCall(number: number, piece: CallPiece): BlockKey {
    const keys = this.#numbered.get(number) ?? [];
    const named = keys.find((key) => piece.id !== "" && this.#callAt(key).id === piece.id);
    const known = named ?? keys.at(-1);
    if (known !== undefined && !beginsAnother(piece, this.#callAt(known))) return known;
    const key = `call ${number} ${keys.length}`;
    this.#numbered.set(number, [...keys, key]);
    return key;
  }

  /** A key for a call that comes whole. */
  get nextKey(): BlockKey {
    return `whole ${this.#blocks.size}`;
  }

  /** A piece of the arguments' JSON; for a block of the provider's own, of its input. */
  json(key: BlockKey, given: unknown): void {
    const piece = textOr(given, "");
    const block = this.#blocks.get(key);
    if (block?.type === "raw") block.json.add(this.#counted(piece));
    else this.#callAt(key).json.add(this.#counted(piece));
  }

  /** All of the arguments' JSON, in place of its pieces. */
  wholeJson(key: BlockKey, json: string): void {
    const whole = new GrowingJson();
    whole.add(this.#counted(json));
    this.#callAt(key).json = whole;
  }

  /** Arguments that came whole: an object, its JSON, or whatever the model made of it. */
  input(key: BlockKey, input: unknown): void {
    const block = this.#callAt(key);
    if (isFields(input)) {
      this.#count(input);
      block.input = input;
    } else if (input !== undefined && input !== null)
      this.wholeJson(key, typeof input === "string" ? input : JSON.stringify(input));
  }

  /** The arguments of a call are complete. */
  endCall(key: BlockKey): void {
    const block = this.#blocks.get(key);
    if (block?.type !== "toolCall" || block.isEnded) return;
    block.isEnded = true;
    this.#giveOwnId(block);
    this.#onDelta?.({ type: "tool-call", id: block.id, name: block.name });
  }

  /** Every call that has begun is complete. */
  endCalls(): void {
    for (const key of this.#blocks.keys()) this.endCall(key);
  }

  raw(key: BlockKey, block: Fields): void {
    this.#count(block);
    this.#blocks.set(key, { type: "raw", block, json: new GrowingText() });
  }

  /** The answer is longer than any model's: nothing more of it is to be read. */
  get isFull(): boolean {
    return this.#characters > maxReplyCharacters;
  }

  #counted(text: string): string {
    this.#characters += text.length;
    return text;
  }

  #count(value: unknown): void {
    this.#characters += JSON.stringify(value)?.length ?? 0;
  }

  get isEmpty(): boolean {
    return this.#blocks.size === 0;
  }

  get hasCalls(): boolean {
    return this.#blocks.values().some(({ type }) => type === "toolCall");
  }

  /** The answer as a record keeps it. */
  message(end: ReplyEnd): AssistantMessage {
    const usage = this.#usage();
    for (const block of this.#blocks.values()) if (block.type === "toolCall") this.#giveOwnId(block);
    return {
      role: "assistant",
      content: this.#content(),
      ...this.identity,
      ...(usage === null ? {} : { usage }),
      stopReason: end.stopReason,
      ...(end.errorMessage === undefined ? {} : { errorMessage: end.errorMessage }),
      ...(this.responseId === null ? {} : { responseId: this.responseId }),
      ...(this.responseModel === null || this.responseModel === this.identity.model
        ? {}
        : { responseModel: this.responseModel }),
    };
  }

  /** What had arrived; null when that is nothing. */
  partial(end: ReplyEnd): AssistantMessage | null {
    const message = this.message(end);
    return message.content.length === 0 ? null : message;
  }

  #usage(): Usage | null {
    return this.usage === null ? null : recordUsage(this.usage, this.reasoningTokens);
  }

  #content(): Exclude<AssistantMessage["content"], string> {
    return this.#blocks.values().toArray().flatMap(finished);
  }

  /**
   * Results belong to calls by the ids of the calls. A call without an id, or with that of another, gets one of ours.
   */
  #giveOwnId(call: CallDraft): void {
    if (call.hasOwnId) return;
    if (call.id === "" || this.#callIds.has(call.id)) call.id = this.#nextCallId();
    this.#callIds.add(call.id);
    call.hasOwnId = true;
  }

  #textAt(key: BlockKey): TextDraft {
    return this.#at(key, "text", () => ({ type: "text", text: new GrowingText(), extra: {} }));
  }

  #thinkingAt(key: BlockKey): ThinkingDraft {
    return this.#at(key, "thinking", () => ({
      type: "thinking",
      text: new GrowingText(),
      signature: null,
      isRedacted: false,
    }));
  }

  #callAt(key: BlockKey): CallDraft {
    return this.#at(key, "toolCall", () => ({
      type: "toolCall",
      id: "",
      name: "",
      json: new GrowingJson(),
      input: null,
      isEnded: false,
      hasOwnId: false,
    }));
  }

  #at<Type extends BlockDraft["type"]>(
    key: BlockKey,
    type: Type,
    create: () => BlockDraft & { readonly type: Type },
  ): BlockDraft & { readonly type: Type } {
    const found = this.#blocks.get(key);
    if (found !== undefined && isOfType(found, type)) return found;
    const made = create();
    // A block without a word has its weight too.
    this.#characters += blockCharacters;
    this.#blocks.set(key, made);
    return made;
  }
}

/**
 * Whether a piece is the beginning of another call than the one under its number. Gemini's endpoint and older ones of
 * Ollama number every call 0 and give some no id; others repeat the name, or give each piece another id.
 */
function beginsAnother({ id, name, arguments: given }: CallPiece, call: CallDraft): boolean {
  if (name === "" || call.name === "") return false;
  const isWhole = call.input !== null || call.json.isWhole;
  if (id !== "" && call.id !== "") return id !== call.id && (isWhole || call.json.length === 0);
  return isWhole && given !== "" && given !== undefined;
}

function isOfType<Type extends BlockDraft["type"]>(
  block: BlockDraft,
  type: Type,
): block is BlockDraft & { readonly type: Type } {
  return block.type === type;
}

/** The block as a record keeps it; none when it says nothing. */
function finished(draft: BlockDraft): Exclude<AssistantMessage["content"], string> {
  switch (draft.type) {
    case "text":
      return draft.text.length === 0 ? [] : [{ type: "text", text: draft.text.toString(), ...draft.extra }];
    case "thinking": {
      const { text, signature, isRedacted } = draft;
      if (text.length === 0 && signature === null) return [];
      const signed = signature === null ? {} : { thinkingSignature: signature };
      return [{ type: "thinking", thinking: text.toString(), ...signed, ...(isRedacted ? { redacted: true } : {}) }];
    }
    case "toolCall":
      return [finishedCall(draft)];
    case "raw":
      return [finishedRaw(draft)];
  }
}

function finishedCall({ id, name, json, input, isEnded }: CallDraft): ToolCallBlock {
  const text = json.toString();
  const parsed = text === "" ? (input ?? (isEnded ? {} : null)) : parseFields(text);
  const call = { type: "toolCall", id, name } as const;
  return parsed === null ? { ...call, arguments: {}, partialJson: text } : { ...call, arguments: parsed };
}

function finishedRaw({ block, json }: RawDraft): UnknownBlock {
  const type = typeof block["type"] === "string" ? block["type"] : "unknown";
  const text = json.toString();
  if (text === "") return { ...block, type };
  const input = parseFields(text);
  return input === null ? { ...block, type, partialJson: text } : { ...block, type, input };
}
