import type { AssistantMessage, ChatDelta, ToolCallBlock, Usage } from "@throughline/core";
import type { UnknownBlock } from "@throughline/core/internal";
import { type Fields, isFields, recordUsage, systemRandom } from "@throughline/core/internal";
import { callIds } from "./call-ids.ts";
import { GrowingJson, GrowingText } from "./growing-text.ts";
import { parseFields, textOr } from "./wire-fields.ts";

export interface ReplyIdentity {
  readonly api: string;
  readonly provider: string;
  readonly model: string;
}

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
  /** Is true once the id is unique among the calls of the answer. */
  hasOwnId: boolean;
}

/** Holds the fields of one piece of a streamed call. Fields that the piece omits are empty. */
export interface CallPiece {
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
}

/** Holds a provider-specific block. `json` collects the input of a block that is streamed. */
interface RawDraft {
  readonly type: "raw";
  readonly block: Fields;
  readonly json: GrowingText;
}

type BlockDraft = TextDraft | ThinkingDraft | CallDraft | RawDraft;

/** The limit is about ten times the longest genuine answers. */
export const maxReplyCharacters: number = 4 * 1024 * 1024;
const blockCharacters = 100;

/** Identifies a block by the provider's own numbering. The draft keeps blocks in the order of their first piece. */
export type BlockKey = string | number;

/** Collects an answer, whole or in pieces. It can produce a record at any time, so that a broken answer is not lost. */
export class ReplyDraft {
  readonly identity: ReplyIdentity;
  readonly #onDelta: ((delta: ChatDelta) => void) | null;
  readonly #nextCallId: () => string;
  readonly #blocks = new Map<BlockKey, BlockDraft>();
  /** Maps the server's number to call keys. Some servers use the same number for all calls. */
  readonly #numbered = new Map<number, readonly string[]>();
  readonly #callIds = new Set<string>();
  #characters = 0;
  responseId: string | null = null;
  /** Names the model that answered, if the provider states it. */
  responseModel: string | null = null;
  /** Holds the provider's stop reason. It is null until the answer ends. */
  stopReason: string | null = null;
  /** Holds the usage in the provider's own fields. */
  usage: Fields | null = null;
  /** Counts reasoning tokens, which are part of the output. Null lets `recordUsage` derive them. */
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

  /** Pieces arrive unchecked from the server. A piece that is not text counts as empty. */
  text(key: BlockKey, given: unknown): void {
    const piece = textOr(given, "");
    this.#textAt(key).text.add(this.#counted(piece));
    if (piece !== "") this.#onDelta?.({ type: "text", text: piece });
  }

  /** Adds a whole text unless its pieces arrived before, so that the text is not doubled. */
  wholeText(key: BlockKey, text: string): void {
    if (this.#textAt(key).text.length === 0) this.text(key, text);
  }

  /** Stores a provider field beside a text, such as citations. */
  textField(key: BlockKey, name: string, value: unknown): void {
    this.#count(value);
    this.#textAt(key).extra[name] = value;
  }

  /** Appends to a list field beside a text. */
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

  /** Stores the signature that the provider requires when the thinking is sent back. */
  sign(key: BlockKey, signature: unknown, isRedacted = false): void {
    const block = this.#thinkingAt(key);
    if (typeof signature !== "string") return;
    block.signature = this.#counted(signature);
    block.isRedacted = isRedacted;
  }

  /** Begins a call or adds to it. Empty values change nothing, and the first id stays. */
  call(key: BlockKey, id: string, name: string): void {
    const block = this.#callAt(key);
    if (block.id === "") block.id = this.#counted(id);
    if (name !== "") block.name = this.#counted(name);
  }

  /**
   * Returns the key of the call to which a piece belongs. That is the newest call with the number, unless the piece
   * begins another call.
   */
  numberedCall(number: number, piece: CallPiece): BlockKey {
    const keys = this.#numbered.get(number) ?? [];
    const named = keys.find((key) => piece.id !== "" && this.#callAt(key).id === piece.id);
    const known = named ?? keys.at(-1);
    if (known !== undefined && !beginsAnother(piece, this.#callAt(known))) return known;
    const key = `call ${number} ${keys.length}`;
    this.#numbered.set(number, [...keys, key]);
    return key;
  }

  /** Returns a new key for a call that arrives whole. */
  get nextKey(): BlockKey {
    return `whole ${this.#blocks.size}`;
  }

  /** Adds a piece of JSON to the arguments of a call, or to the input of a provider-specific block. */
  json(key: BlockKey, given: unknown): void {
    const piece = textOr(given, "");
    const block = this.#blocks.get(key);
    if (block?.type === "raw") block.json.add(this.#counted(piece));
    else this.#callAt(key).json.add(this.#counted(piece));
  }

  /** Replaces the collected pieces by the complete JSON of the arguments. */
  wholeJson(key: BlockKey, json: string): void {
    const whole = new GrowingJson();
    whole.add(this.#counted(json));
    this.#callAt(key).json = whole;
  }

  /** Sets arguments that arrived whole: an object, its JSON text, or any other value that the model produced. */
  input(key: BlockKey, input: unknown): void {
    const block = this.#callAt(key);
    if (isFields(input)) {
      this.#count(input);
      block.input = input;
    } else if (input !== undefined && input !== null)
      this.wholeJson(key, typeof input === "string" ? input : JSON.stringify(input));
  }

  /** Marks the arguments of a call as complete and reports the call. */
  endCall(key: BlockKey): void {
    const block = this.#blocks.get(key);
    if (block?.type !== "toolCall" || block.isEnded) return;
    block.isEnded = true;
    this.#giveOwnId(block);
    this.#onDelta?.({ type: "tool-call", id: block.id, name: block.name });
  }

  /** Ends all calls, for servers that do not end them one by one. */
  endCalls(): void {
    for (const key of this.#blocks.keys()) this.endCall(key);
  }

  raw(key: BlockKey, block: Fields): void {
    this.#count(block);
    this.#blocks.set(key, { type: "raw", block, json: new GrowingText() });
  }

  /** Is true if the answer exceeds any genuine answer. The caller then stops reading to protect memory. */
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

  /** Returns the part that has arrived, or null when it has no content. */
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

  /** Results refer to calls by id. A call without an id, or with an id that another call has, gets a generated id. */
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
    // A block without text counts too, so that endless empty blocks reach the limit.
    this.#characters += blockCharacters;
    this.#blocks.set(key, made);
    return made;
  }
}

/**
 * Checks whether a piece begins a new call instead of continuing the one with its number. Gemini's endpoint and older
 * Ollama endpoints number every call 0, and some send no id. Other servers repeat the name, or give each piece another
 * id.
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
