import { isFields, type Fields } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import type { RecordSource } from "@throughline/core/internal";
import type { ForeignReader, ForeignReaderOptions, ForeignItem, UnitPlace } from "../foreign-format.ts";
import { callsOf, partOf } from "../mapped-messages.ts";
import { derivedId, fieldsWithout, UnitRecords, type RecordBody } from "../unit-records.ts";
import { readItem, type ReadItem, type ReplyAuthor } from "./codex-items.ts";
import { CodexFacts } from "./codex-facts.ts";
import { codexLine } from "./codex-lines.ts";
import { RecentPrompts } from "./recent-prompts.ts";
import { TokenCounts } from "./token-counts.ts";
import { UserTurns } from "./user-turns.ts";

export function createCodexReader(options: ForeignReaderOptions): ForeignReader {
  return new CodexReader(options);
}

/**
 * A replacement history may be long, but its records form one item that is stored in one append. Only this many of its
 * newest items are kept.
 */
const mostReplacements = 800;

class CodexReader implements ForeignReader {
  headId: string | null = null;
  readonly #records: UnitRecords;
  readonly #facts: CodexFacts;
  readonly #tokens = new TokenCounts();
  readonly #turns = new UserTurns();
  readonly #prompts = new RecentPrompts();
  /** A result does not state its tool, so the names of calls without a result are kept. */
  readonly #toolNames = new Map<string, string>();
  #model: string | null = null;
  #effort: string | null = null;
  /** The id is that of the first record of the open reply; null between replies. */
  #replyId: string | null = null;

  constructor(options: ForeignReaderOptions) {
    this.#records = new UnitRecords("codex", options);
    this.#facts = new CodexFacts(options.path ?? null);
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

  push(unit: RecordSource, place: UnitPlace): ForeignItem {
    const { part } = place;
    if (part === "head" || part === "tail") return this.#frame(unit, place, part);
    const { value, reason } = this.#records.parse(unit, place);
    if (value === null) return this.#records.unparsed(reason ?? "malformed", place, this.headId);
    const { type, payload } = codexLine(value);
    const timestamp = this.#records.timestamp(value["timestamp"]);
    const at: LinePlace = { id: this.#records.placed(place), timestamp, place };
    if (part === "element") return this.#listed(at, value);
    switch (type) {
      case "session_meta":
        this.#facts.take(payload);
        return this.#side(at, type, payload);
      case "turn_context":
        return this.#settings(at, payload);
      case "response_item":
        return this.#item(at, payload);
      case "compacted":
        return this.#compaction(at, payload);
      case "event_msg":
        return this.#event(at, payload);
      default:
        return this.#side(at, type, payload);
    }
  }

  finish(): readonly Finding[] {
    this.#records.log.finish();
    return this.findings;
  }

  /** A session that is one document has its header beside its items. */
  #frame(unit: RecordSource, place: UnitPlace, part: "head" | "tail"): ForeignItem {
    const fields = this.#records.frameFields(unit, place, part);
    const session = isFields(fields["session"]) ? fields["session"] : {};
    if (Object.keys(session).length > 0) this.#facts.take(session);
    const timestamp = this.#records.timestamp(session["timestamp"]);
    const at = { id: this.#records.placed(place), timestamp, parentId: this.headId };
    return { records: [this.#records.record(this.#records.frameBody(part, fields), at)], unparsed: null };
  }

  /** A message of the system in a document is a notice to the person, which the program never sends. */
  #listed(at: LinePlace, item: Fields): ForeignItem {
    return item["role"] === "system" ? this.#side(at, "notice", item) : this.#item(at, item);
  }

  /** Codex repeats its settings for every turn, so only changes become records. */
  #settings(at: LinePlace, payload: Fields): ForeignItem {
    const { model, effort } = payload;
    const bodies: RecordBody[] = [];
    if (typeof model === "string" && model !== this.#model) {
      this.#model = model;
      bodies.push({ type: "model_change", provider: this.#facts.provider, modelId: model });
    }
    if (typeof effort === "string" && effort !== this.#effort) {
      this.#effort = effort;
      bodies.push({ type: "thinking_level_change", thinkingLevel: effort });
    }
    if (bodies.length === 0) return this.#side(at, "turn_context", payload);
    return this.#main(at, bodies, { native: payload });
  }

  #item(at: LinePlace, payload: Fields): ForeignItem {
    const item = readItem(payload, this.#author);
    if (item.body === null) {
      if (item.kind === "none" && isMessageType(payload)) this.#records.tellUnreadable("item", at.id, at.place);
      return this.#side(at, customName(payload), payload);
    }
    return this.#main(at, [this.#placed(item, item.body, at.id)], {});
  }

  #placed(item: ReadItem, body: RecordBody, id: string): RecordBody {
    this.#turns.note(item.kind, this.headId);
    if (item.kind === "prompt") this.#prompts.add(body);
    return this.#copied(item, body, id);
  }

  #named(body: RecordBody, callId: string): RecordBody {
    const toolName = this.#toolNames.get(callId);
    this.#toolNames.delete(callId);
    if (toolName === undefined) return body;
    return { ...body, message: { ...(body["message"] as Fields), toolName } };
  }

  /**
   * The line replaces the conversation. It lists the new items; in older versions the person's prompts and the summary
   * replace it. A list that begins with the summary becomes a compaction. Any other list becomes an empty context with
   * copies of its items.
   */
  #compaction(at: LinePlace, payload: Fields): ForeignItem {
    this.#replyId = null;
    const { message, replacement_history: listed, ...native } = payload;
    const summary = typeof message === "string" ? message : "";
    const items = Array.isArray(listed) ? (listed as readonly unknown[]).filter(isFields) : null;
    const given = items ?? this.#prompts.itemsWith(summary);
    if (given.length > mostReplacements)
      this.#records.tellCut("items", given.length, mostReplacements, at.id, at.place);
    const read = given.slice(-mostReplacements).map((item) => readItem(item, this.#author));
    const isEncrypted = given.some(({ type }) => type === "compaction");
    if (isEncrypted) this.#tellEncrypted(at);
    const isSummaryFirst = summary !== "" && items !== null && textOf(read[0]) === summary;
    const first: RecordBody = isSummaryFirst
      ? { type: "compaction", summary, firstKeptEntryId: at.id, tokensBefore: 0, details: { source: "codex" } }
      : { type: "reset", reason: "codex.compacted", ...(summary === "" ? {} : { summary }) };
    const copies = isSummaryFirst ? read.slice(1) : read;
    const bodies = [first];
    for (const item of copies) {
      if (item.body === null) continue;
      bodies.push(this.#copied(item, item.body, derivedId(at.id, bodies.length)));
    }
    this.#replyId = null;
    return this.#main(at, bodies, Object.keys(native).length === 0 ? {} : { native });
  }

  /** The provider compacted the conversation into an encrypted item that no other program can read. */
  #tellEncrypted({ id, place: { line, byteOffset } }: LinePlace): void {
    const message =
      "The provider compacted the conversation before this line into an encrypted item: its models read it, and for others the context begins without it.";
    this.#records.log.add("SOURCE_UNREAD", message, { line, byteOffset, recordId: id });
  }

  /** A copied item does not count as a turn, because a rollback removes original turns only. */
  #copied({ kind, callId }: ReadItem, body: RecordBody, id: string): RecordBody {
    if (kind !== "reply") this.#replyId = null;
    if (callId !== null) return this.#named(body, callId);
    if (kind !== "reply") return body;
    for (const call of callsOf((body["message"] as Fields)["content"])) this.#toolNames.set(call.id, call.name);
    const isFurtherPart = this.#replyId !== null;
    this.#replyId ??= id;
    return partOf(body, this.#replyId, isFurtherPart);
  }

  #event(at: LinePlace, payload: Fields): ForeignItem {
    const { type } = payload;
    if (type === "thread_rolled_back") return this.#rollback(at, payload);
    const usage = type === "token_count" ? this.#tokens.next(payload["info"]) : null;
    if (usage === null) return this.#side(at, customName(payload), payload);
    const { provider, model } = this.#author;
    const identity = model === null ? { provider } : { provider, model };
    const native = fieldsWithout(payload, new Set(["type"]));
    const body = { type: "usage", kind: "codex.call", usage, ...identity, native };
    return { records: [this.#records.record(body, { ...at, parentId: this.headId })], unparsed: null };
  }

  /** Codex removes the newest turns, and the conversation continues before them. */
  #rollback(at: LinePlace, payload: Fields): ForeignItem {
    this.#replyId = null;
    const targetId = this.#turns.rollBack(payload["num_turns"], this.headId);
    const native = fieldsWithout(payload, new Set(["type"]));
    const record = this.#records.record({ type: "leaf", targetId, native }, { ...at, parentId: this.headId });
    this.headId = targetId;
    return { records: [record], unparsed: null };
  }

  #side(at: LinePlace, type: unknown, payload: Fields): ForeignItem {
    const data = fieldsWithout(payload, new Set(typeof payload["type"] === "string" ? ["type"] : []));
    return this.#records.side(type, data, { ...at, parentId: this.headId });
  }

  #main({ id, timestamp }: LinePlace, bodies: readonly RecordBody[], more: Fields): ForeignItem {
    const unit = this.#records.open({ id, timestamp, headId: this.headId });
    for (const body of bodies) unit.add(unit.isEmpty ? { ...more, ...body } : body);
    this.headId = unit.headId;
    return unit.close();
  }

  get #author(): ReplyAuthor {
    return { provider: this.#facts.provider, model: this.#model };
  }
}

interface LinePlace {
  readonly id: string;
  readonly timestamp: string;
  readonly place: UnitPlace;
}

function customName({ type }: Fields): unknown {
  return type ?? "response_item";
}

function isMessageType({ type, role }: Fields): boolean {
  return type === "message" || typeof role === "string";
}

function textOf(item: ReadItem | undefined): string | null {
  if (item === undefined || item.kind !== "prompt" || item.body === null) return null;
  const { content } = item.body["message"] as Fields;
  return typeof content === "string" ? content : null;
}
