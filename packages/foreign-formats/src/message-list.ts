import type { Fields, RecordSource } from "@throughline/core/internal";
import { asText } from "./as-text.ts";
import type { Finding } from "@throughline/core";
import type { ForeignReader, ForeignReaderOptions, ForeignUnit, UnitPlace } from "./foreign-format.ts";
import type { ForeignFormatName } from "./names.ts";
import { callsOf } from "./mapped-messages.ts";
import { UnitRecords, type RecordBody } from "./unit-records.ts";

/** What an element of a list of messages means. */
export interface ReadElement {
  /** In order; none: nothing that a model sees. */
  readonly bodies: readonly RecordBody[];
  /** Whether it is a message, and in no form that can be read. */
  readonly isUnreadable: boolean;
  /** Whether a part of the message is in no form that can be read. @default false */
  readonly hasUnreadablePart?: boolean;
  /** Where the element states them. */
  readonly id?: unknown;
  readonly time?: unknown;
  /** Whether the program has taken the message back: it is kept, and the conversation continues from before it. */
  readonly isHidden?: boolean;
}

/** What stands before or behind the list, read. */
export interface ReadFrame {
  /** What of it belongs to the conversation, behind the list. */
  readonly bodies: readonly RecordBody[];
  readonly time?: unknown;
}

/** How a format keeps a conversation as a list of messages. */
export interface MessageList {
  readonly name: ForeignFormatName;
  frame(fields: Fields, part: "head" | "tail"): ReadFrame;
  element(value: Fields, place: UnitPlace): ReadElement;
  /** The session's id, where the document states one. */
  readonly sessionId: string | null;
  /** The session that spawned this one. Absent: the format does not say. */
  readonly spawnedBy?: string | null;
  /** What the document says of the session. */
  readonly entry: Readonly<Record<string, unknown>>;
}

/** Creates a reader of a document that is a list of messages, or has one. */
export function createListReader(list: MessageList, options: ForeignReaderOptions): ForeignReader {
  return new ListReader(list, options);
}

class ListReader implements ForeignReader {
  headId: string | null = null;
  /** The last record of what was taken back, on which the next one of that hangs. */
  #hiddenId: string | null = null;
  readonly #list: MessageList;
  readonly #records: UnitRecords;
  /** The tools that were called, by the ids of the calls. */
  readonly #toolNames = new Map<string, string>();
  /** What stands before the list and belongs behind it. */
  #bodiesOfHead: readonly RecordBody[] = [];

  constructor(list: MessageList, options: ForeignReaderOptions) {
    this.#list = list;
    this.#records = new UnitRecords(list.name, options);
  }

  get findings(): readonly Finding[] {
    return this.#records.log.findings;
  }

  get entry(): Readonly<Record<string, unknown>> {
    return this.#list.entry;
  }

  get sessionId(): string | null {
    return this.#list.sessionId;
  }

  get spawnedBy(): string | null {
    return this.#list.spawnedBy ?? null;
  }

  push(unit: RecordSource, place: UnitPlace): ForeignUnit {
    const { part } = place;
    if (part === "head" || part === "tail") return this.#frame(unit, place, part);
    const { value, reason } = this.#records.parse(unit, place);
    if (value === null) return this.#records.unparsed(reason ?? "malformed", place, this.headId);
    const read = this.#list.element(value, place);
    const { bodies, isUnreadable, hasUnreadablePart = false, id: stated, time, isHidden = false } = read;
    const id = this.#records.claim(stated, place);
    const timestamp = this.#records.timestamp(time);
    if (isUnreadable || hasUnreadablePart)
      this.#records.tellUnreadable(isUnreadable ? "message" : "part of a message", id, place);
    if (bodies.length === 0)
      return this.#records.side(value["role"] ?? "element", value, { id, timestamp, parentId: this.headId });
    const before = isHidden ? (this.#hiddenId ?? this.headId) : this.headId;
    const opened = this.#records.open({ id, timestamp, headId: before });
    for (const body of bodies) opened.add(this.#named(body));
    if (isHidden) this.#hiddenId = opened.headId;
    else this.headId = opened.headId;
    return opened.close();
  }

  finish(): readonly Finding[] {
    this.#records.log.finish();
    return this.findings;
  }

  #frame(unit: RecordSource, place: UnitPlace, part: "head" | "tail"): ForeignUnit {
    const fields = this.#records.frameFields(unit, place, part);
    const { bodies, time } = this.#list.frame(fields, part);
    const at = { id: this.#records.claim(undefined, place), timestamp: this.#records.timestamp(time) };
    const opened = this.#records.open({ ...at, headId: this.headId });
    opened.add(this.#records.frameBody(part, fields));
    if (part === "head") this.#bodiesOfHead = bodies;
    else for (const body of [...this.#bodiesOfHead, ...bodies]) opened.add(this.#named(body));
    this.headId = opened.headId;
    return opened.close();
  }

  /** Messages do not say of which tool a result is. */
  #named(body: RecordBody): RecordBody {
    const message = body["message"] as Fields | undefined;
    for (const { id, name } of callsOf(message?.["content"])) this.#toolNames.set(id, name);
    if (message?.["role"] !== "toolResult" || message["toolName"] !== undefined) return body;
    const toolName = this.#toolNames.get(asText(message["toolCallId"]));
    return toolName === undefined ? body : { ...body, message: { ...message, toolName } };
  }
}
