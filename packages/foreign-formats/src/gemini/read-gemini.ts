import { isFields, type Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import { createHash } from "node:crypto";
import type { Finding } from "@throughline/core";
import type { RecordSource } from "@throughline/core/internal";
import type { ForeignReader, ForeignReaderOptions, ForeignItem, UnitPlace } from "../foreign-format.ts";
import { partOf } from "../mapped-messages.ts";
import { UnitRecords, type OpenUnit, type RecordBody } from "../unit-records.ts";
import { readMessage, type ReadPrompt, type ReadReply, type SentPart } from "./gemini-messages.ts";
import { LiveMessages, type LiveMessage } from "./live-messages.ts";
import { SessionFacts } from "./session-facts.ts";

export function createGeminiReader(options: ForeignReaderOptions): ForeignReader {
  return new GeminiReader(options);
}

/**
 * A replacement list may be long, but its records form one item that is stored in one append. Only this many of its
 * newest messages are kept.
 */
const mostReplacements = 400;
/** Only messages of these types are reported when they cannot be read. */
const messageTypes: ReadonlySet<unknown> = new Set(["user", "gemini"]);

class GeminiReader implements ForeignReader {
  headId: string | null = null;
  readonly #records: UnitRecords;
  readonly #facts: SessionFacts;
  readonly #live = new LiveMessages();
  /** Repeated copies of a message repeat its results, so each result is stored once. */
  readonly #answered = new Set<string>();

  constructor(options: ForeignReaderOptions) {
    this.#records = new UnitRecords("gemini", options);
    this.#facts = new SessionFacts(options.path ?? null);
  }

  get findings(): readonly Finding[] {
    return this.#records.log.findings;
  }

  get entry(): Readonly<Record<string, unknown>> {
    return this.#facts.entry;
  }

  get sessionId(): string | null {
    return this.#facts.sessionId;
  }

  get spawnedBy(): string | null {
    return this.#facts.spawnedBy;
  }

  /** The fields of a line are checked in the program's order, because a line may have several of them. */
  push(unit: RecordSource, place: UnitPlace): ForeignItem {
    if (place.part === "head" || place.part === "tail") return this.#frame(unit, place, place.part);
    const { value, reason } = this.#records.parse(unit, place);
    if (value === null) return this.#records.unparsed(reason ?? "malformed", place, this.headId);
    const { $rewindTo: rewindTo, $set: set, id, sessionId, projectHash, timestamp } = value;
    const at = (stated?: unknown): LinePlace => ({
      id: this.#records.claim(stated, place),
      timestamp: this.#records.timestamp(timestamp ?? (isFields(set) ? set["lastUpdated"] : value["startTime"])),
      place,
    });
    if (typeof rewindTo === "string") return this.#rewind(at(), rewindTo);
    if (typeof id === "string") return this.#message(at(id), id, value);
    if (isFields(set)) return this.#header(at(), "set", set);
    if (typeof sessionId === "string" && typeof projectHash === "string") return this.#header(at(), "header", value);
    return this.#side(at(), "unknown", value);
  }

  finish(): readonly Finding[] {
    this.#records.log.finish();
    return this.findings;
  }

  /**
   * A session that is one document has fields before and after its messages, which may state facts about the session.
   */
  #frame(unit: RecordSource, place: UnitPlace, part: "head" | "tail"): ForeignItem {
    const fields = this.#records.frameFields(unit, place, part);
    this.#facts.take(fields);
    const id = this.#records.claim(undefined, place);
    const timestamp = this.#records.timestamp(part === "head" ? fields["startTime"] : undefined);
    const record = this.#records.record(this.#records.frameBody(part, fields), {
      id,
      timestamp,
      parentId: this.headId,
    });
    return { records: [record], unparsed: null };
  }

  /** The program removes a message and all later ones, and the conversation continues before it. */
  #rewind(at: LinePlace, messageId: string): ForeignItem {
    const targetId = this.#live.rewindTo(messageId);
    const body = { type: "leaf", targetId, native: { $rewindTo: messageId } };
    const record = this.#records.record(body, { ...at, parentId: this.headId });
    this.headId = targetId;
    return { records: [record], unparsed: null };
  }

  /** A header that lists messages replaces the conversation with them. */
  #header(at: LinePlace, name: string, fields: Fields): ForeignItem {
    this.#facts.take(fields);
    const { messages } = fields;
    if (!Array.isArray(messages)) return this.#side(at, name, fields);
    const listed = (messages as readonly unknown[]).filter(isFields).filter(({ id }) => typeof id === "string");
    if (listed.length > mostReplacements)
      this.#records.tellCut("messages", listed.length, mostReplacements, at.id, at.place);
    this.#live.clear();
    this.#answered.clear();
    const { messages: _messages, ...native } = fields;
    const unit = this.#records.open({ ...at, headId: this.headId });
    unit.add({ type: "reset", reason: `gemini.${name}`, native });
    for (const message of listed.slice(-mostReplacements)) this.#take(unit, asText(message["id"]), message);
    return this.#close(unit);
  }

  #message(at: LinePlace, messageId: string, message: Fields): ForeignItem {
    const unit = this.#records.open({ ...at, headId: this.headId });
    const isRead = this.#take(unit, messageId, message);
    if (!isRead && messageTypes.has(message["type"])) this.#records.tellUnreadable("message", at.id, at.place);
    return unit.isEmpty ? this.#side(at, message["type"], message) : this.#close(unit);
  }

  /** A later copy of a message adds only its new content. False means that the message cannot be read. */
  #take(unit: OpenUnit, messageId: string, message: Fields): boolean {
    const read = readMessage(message);
    const known = this.#live.get(messageId);
    if (read.kind === "unsent") {
      if (known === undefined) this.#live.add(messageId, liveMessage(unit.headId));
      return !read.isUnreadable;
    }
    const live = known ?? liveMessage(unit.headId);
    if (known === undefined) this.#live.add(messageId, live);
    if (read.kind === "prompt") this.#prompt(unit, live, read);
    else this.#reply(unit, messageId, live, read);
    return true;
  }

  #prompt(unit: OpenUnit, live: LiveMessage, { bodies }: ReadPrompt): void {
    const said = bodies.find(({ callId }) => callId === null);
    const content = said === undefined ? null : contentOf(said.body);
    if (live.recordId !== null) {
      this.#edit(unit, live, content, content);
      return;
    }
    live.contentHash = hashOf(content);
    for (const part of bodies) {
      const id = this.#addPart(unit, part);
      if (part === said) live.recordId = id;
    }
  }

  #reply(unit: OpenUnit, messageId: string, live: LiveMessage, read: ReadReply): void {
    const { body, usage } = read;
    if (body !== null && live.recordId === null) this.#begin(unit, messageId, live, body, read);
    else if (body !== null) this.#continue(unit, messageId, live, body, read);
    for (const result of read.results) this.#addPart(unit, result);
    if (usage === null || live.isUsageStored) return;
    live.isUsageStored = true;
    const { model } = (body?.["message"] ?? {}) as Fields;
    const author = { provider: "google", ...(typeof model === "string" ? { model } : {}) };
    unit.add({ type: "usage", kind: "gemini.call", usage, ...author });
  }

  #begin(unit: OpenUnit, messageId: string, live: LiveMessage, body: RecordBody, { calls, usage }: ReadReply): void {
    const message = body["message"] as Fields;
    live.isUsageStored = usage !== null;
    for (const id of calls.keys()) live.storedCallIds.add(id);
    live.firstCallIds = new Set(calls.keys());
    live.contentHash = hashOf(withoutCalls(contentOf(body)));
    const counted = usage === null ? body : { ...body, message: { ...message, usage } };
    live.recordId = unit.add(partOf(counted, messageId, false));
  }

  /** A later copy of a reply may have new calls, which are added, and other words, which become an edit. */
  #continue(unit: OpenUnit, messageId: string, live: LiveMessage, body: RecordBody, { calls }: ReadReply): void {
    const content = contentOf(body) as readonly Fields[];
    const words = withoutCalls(content);
    const kept = content.filter(({ type, id }) => type !== "toolCall" || live.firstCallIds.has(asText(id)));
    this.#edit(unit, live, words, kept);
    const added = [...calls].filter(([id]) => !live.storedCallIds.has(id));
    if (added.length === 0) return;
    for (const [id] of added) live.storedCallIds.add(id);
    const message = { ...(body["message"] as Fields), content: added.map(([, block]) => block) };
    unit.add(partOf({ ...body, message }, messageId, true));
  }

  #edit(unit: OpenUnit, live: LiveMessage, words: unknown, content: unknown): void {
    const hash = hashOf(words);
    if (hash === live.contentHash || live.recordId === null) return;
    live.contentHash = hash;
    unit.add({ type: "context_edit", targetId: live.recordId, replacement: { content } });
  }

  /** A later copy of the message repeats earlier results, so a second result of a call is skipped. */
  #addPart(unit: OpenUnit, { callId, body }: SentPart): string | null {
    if (callId !== null && this.#answered.has(callId)) return null;
    if (callId !== null) this.#answered.add(callId);
    return unit.add(body);
  }

  #close(unit: OpenUnit): ForeignItem {
    this.headId = unit.headId;
    return unit.close();
  }

  #side(at: LinePlace, type: unknown, data: Fields): ForeignItem {
    return this.#records.side(type, data, { ...at, parentId: this.headId });
  }
}

interface LinePlace {
  readonly id: string;
  readonly timestamp: string;
  readonly place: UnitPlace;
}

function liveMessage(headBefore: string | null): LiveMessage {
  return {
    recordId: null,
    headBefore,
    firstCallIds: new Set(),
    storedCallIds: new Set(),
    isUsageStored: false,
    contentHash: "",
  };
}

function contentOf(body: RecordBody): unknown {
  return (body["message"] as Fields)["content"];
}

function withoutCalls(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return (content as readonly Fields[]).filter(({ type }) => type !== "toolCall");
}

/** The hash keeps memory small: only equality of contents matters. */
function hashOf(content: unknown): string {
  const text = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return createHash("sha256").update(JSON.stringify(text)).digest("base64url").slice(0, 16);
}
