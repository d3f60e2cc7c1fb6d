import type { Fields, RecordSource } from "@throughline/core/internal";
import { asText } from "./as-text.ts";
import type { Finding } from "@throughline/core";
import type { ForeignReader, ForeignReaderOptions, ForeignItem, UnitPlace } from "./foreign-format.ts";
import type { ForeignFormatName } from "./names.ts";
import { callsOf } from "./mapped-messages.ts";
import { UnitRecords, type RecordBody } from "./unit-records.ts";

export interface ReadElement {
  /** An empty list means that a model gets no part of the element. */
  readonly bodies: readonly RecordBody[];
  /** The element is a message without a known form, which becomes a finding. */
  readonly isUnreadable: boolean;
  /** A part of the message has no known form, which becomes a finding. @default false */
  readonly hasUnreadablePart?: boolean;
  readonly id?: unknown;
  readonly time?: unknown;
  /** The program has removed the message. It is kept on a side branch, and the conversation continues before it. */
  readonly isHidden?: boolean;
}

export interface ReadFrame {
  /** The bodies are written after the list, because an answer follows its request. */
  readonly bodies: readonly RecordBody[];
  readonly time?: unknown;
}

export interface MessageList {
  readonly name: ForeignFormatName;
  frame(fields: Fields, part: "head" | "tail"): ReadFrame;
  element(value: Fields, place: UnitPlace): ReadElement;
  readonly sessionId: string | null;
  /** The property is absent when the format cannot state a parent session. */
  readonly spawnedBy?: string | null;
  readonly entry: Readonly<Record<string, unknown>>;
}

export function createListReader(list: MessageList, options: ForeignReaderOptions): ForeignReader {
  return new ListReader(list, options);
}

class ListReader implements ForeignReader {
  headId: string | null = null;
  /** The next hidden message follows this record, so that hidden messages form one branch. */
  #hiddenId: string | null = null;
  readonly #list: MessageList;
  readonly #records: UnitRecords;
  readonly #toolNames = new Map<string, string>();
  /** A request before the list may hold its answer, which belongs after the list. */
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

  push(unit: RecordSource, place: UnitPlace): ForeignItem {
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

  #frame(unit: RecordSource, place: UnitPlace, part: "head" | "tail"): ForeignItem {
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

  /** A result does not state its tool, so the name comes from the call. */
  #named(body: RecordBody): RecordBody {
    const message = body["message"] as Fields | undefined;
    for (const { id, name } of callsOf(message?.["content"])) this.#toolNames.set(id, name);
    if (message?.["role"] !== "toolResult" || message["toolName"] !== undefined) return body;
    const toolName = this.#toolNames.get(asText(message["toolCallId"]));
    return toolName === undefined ? body : { ...body, message: { ...message, toolName } };
  }
}
