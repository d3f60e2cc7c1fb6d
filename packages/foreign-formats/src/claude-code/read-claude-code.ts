import { isFields, type Fields } from "@throughline/core/internal";
import type { Finding, SessionRecord } from "@throughline/core";
import type { RecordSource } from "@throughline/core/internal";
import type { ForeignReader, ForeignReaderOptions, ForeignItem, UnitPlace } from "../foreign-format.ts";
import { asideBody } from "../mapped-messages.ts";
import { derivedId, fieldsWithout, UnitRecords, type RecordBody } from "../unit-records.ts";
import { editsOf } from "./compactions.ts";
import { LineChain, type ChainLink, type ChainPlace } from "./line-chain.ts";
import type { Reply } from "./reply-table.ts";
import { chainTypes, NativeFields } from "./line-types.ts";
import { answeredIds, replyMessage, textOf, userMessages } from "./line-messages.ts";
import { SessionFacts } from "./session-facts.ts";

export function createClaudeCodeReader(options: ForeignReaderOptions): ForeignReader {
  return new ClaudeCodeReader(options);
}

interface OpenCall {
  readonly name: string;
  readonly reply: Reply;
}

class ClaudeCodeReader implements ForeignReader {
  readonly #records: UnitRecords;
  readonly #chain: LineChain;
  readonly #native = new NativeFields();
  readonly #facts: SessionFacts;
  readonly #calls = new Map<string, OpenCall>();
  /** The first line of the tree decides whether the file belongs to a sub-agent. */
  #isSidechain: boolean | null = null;

  constructor(options: ForeignReaderOptions) {
    this.#records = new UnitRecords("claude-code", options);
    this.#chain = new LineChain(this.#records);
    this.#facts = new SessionFacts(options.path ?? null, options.strayTitles);
  }

  get findings(): readonly Finding[] {
    return this.#records.log.findings;
  }

  get headId(): string | null {
    return this.#chain.headId;
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
    const { value, reason } = this.#records.parse(unit, place);
    if (value === null) {
      if (reason !== "blank") this.#chain.noteGap();
      return this.#records.unparsed(reason ?? "malformed", place, this.headId);
    }
    this.#facts.take(value, (uuid) => this.#chain.has(uuid));
    const type = value["type"];
    if (isBoundary(value)) return this.#boundaryLine(value, place);
    if (!chainTypes.has(type)) return this.#otherLine(value, place);
    if (this.#chain.has(value["uuid"])) return this.#repeatedLine(value, place);
    this.#isSidechain ??= isOfSubAgent(value);
    if (type === "user") return this.#userLine(value, place);
    if (type === "assistant") return this.#replyLine(value, place);
    const prompt = queuedPrompt(value);
    return prompt === null ? this.#noteLine(value, place) : this.#promptLine(value, prompt, "aside", place);
  }

  finish(): readonly Finding[] {
    this.#records.log.finish();
    return this.findings;
  }

  #userLine(value: Fields, place: UnitPlace): ForeignItem {
    const content = contentOf(value["message"]);
    if (value["isCompactSummary"] === true) return this.#summaryLine(value, textOf(content), place);
    if (value["isVisibleInTranscriptOnly"] === true) return this.#noteLine(value, place);
    const ids = answeredIds(content);
    if (ids.length === 0) return this.#promptLine(value, content, value["isMeta"] === true ? "aside" : "prompt", place);
    const reply = this.#answeredReply(value, ids);
    const link = this.#link(value, { kind: "result", messageId: null, answered: reply });
    const bodies = userMessages(content, {
      details: value["toolUseResult"],
      nameOf: (id) => this.#calls.get(id)?.name ?? null,
    });
    for (const id of ids) this.#calls.delete(id);
    if (bodies === null) return this.#unreadable(value, link, place);
    return this.#unit(bodies, value, this.#place(link, value, place));
  }

  /** A program's text in place of a person's becomes a hidden custom message, because no person typed it. */
  #promptLine(value: Fields, content: unknown, kind: "prompt" | "aside", place: UnitPlace): ForeignItem {
    const link = this.#link(value, { kind, messageId: null, answered: null });
    const bodies = userMessages(content, { details: undefined, nameOf: () => null });
    if (bodies === null) return this.#unreadable(value, link, place);
    const isMeta = value["isMeta"] === true;
    const said = isMeta ? bodies.map((body) => asideBody(body, "claude-code.meta")) : bodies;
    return this.#unit(said, value, this.#place(link, value, place));
  }

  #replyLine(value: Fields, place: UnitPlace): ForeignItem {
    const { message } = value;
    const messageId = isFields(message) && typeof message["id"] === "string" ? message["id"] : null;
    const link = this.#link(value, { kind: "reply", messageId, answered: null });
    const read = replyMessage(message, { isError: value["isApiErrorMessage"] === true });
    if (read === null) return this.#unreadable(value, link, place);
    const { chainPlace, timestamp } = this.#place(link, value, place);
    const { reply, isFurtherPart } = chainPlace;
    const bodies: RecordBody[] = [{ type: "message", message: read.messageOf(isFurtherPart) }];
    if (reply !== null) {
      const rest = read.usageBeyond(isFurtherPart ? reply.outputTokens : null);
      reply.outputTokens = Math.max(reply.outputTokens, read.outputTokens);
      if (rest !== null) bodies.push({ type: "usage", kind: "claude-code.reply", usage: rest, ...read.identity });
      for (const { id, name } of read.calls) this.#calls.set(id, { name, reply });
    }
    return this.#unit(bodies, value, { chainPlace, timestamp });
  }

  #noteLine(value: Fields, place: UnitPlace): ForeignItem {
    const link = this.#link(value, { kind: "note", messageId: null, answered: null });
    return this.#customUnit(value, this.#place(link, value, place));
  }

  /** The line states that it is a message but has no form of one, so it becomes a note. */
  #unreadable(value: Fields, link: ChainLink, place: UnitPlace): ForeignItem {
    const placed = this.#place({ ...link, kind: "note" }, value, place);
    this.#records.tellUnreadable("message", placed.chainPlace.id, place);
    return this.#customUnit(value, placed);
  }

  /**
   * A compacted context begins here. Its summary follows in a line of its own, and the earlier lines stay on the
   * branch.
   */
  #boundaryLine(value: Fields, place: UnitPlace): ForeignItem {
    if (this.#chain.has(value["uuid"])) return this.#repeatedLine(value, place);
    const { uuid, parentUuid, compactMetadata } = value;
    const above = [value["logicalParentUuid"], parentUuid].find((one) => this.#chain.has(one));
    const link = this.#link(value, { kind: "boundary", messageId: null, answered: null });
    const placed = this.#place({ ...link, parentUuid: above ?? null }, value, place);
    const metadata = isFields(compactMetadata) ? compactMetadata : {};
    this.#chain.begin({ uuid, metadata, isRoot: !this.#chain.has(parentUuid) });
    const data = fieldsWithout(value, new Set(["type", "uuid", "parentUuid", "timestamp"]));
    return this.#unit([{ type: "custom", customType: "claude-code.compact_boundary", data }], null, placed);
  }

  #summaryLine(value: Fields, summary: string, place: UnitPlace): ForeignItem {
    const compaction = this.#chain.compactionOf(value["parentUuid"]);
    const { metadata = {}, kept = null, isSummaryLast = false } = compaction ?? {};
    const link = this.#link(value, { kind: "summary", messageId: null, answered: null });
    const tip = kept === null || kept.isAtBoundary ? null : this.#chain.idAt(kept.tip);
    const placed = withParent(this.#place(link, value, place), tip);
    const { id } = placed.chainPlace;
    const { preTokens, trigger } = metadata;
    const body = isSummaryLast
      ? { type: "reset", reason: "claude-code.compact_boundary", firstKeptEntryId: kept?.firstId ?? id }
      : {
          type: "compaction",
          summary,
          // A compaction that names its own id keeps no earlier record.
          firstKeptEntryId: kept?.firstId ?? this.#chain.idAt(compaction?.boundary ?? -1) ?? id,
          tokensBefore: typeof preTokens === "number" ? preTokens : 0,
          details: { source: "claude-code", ...(typeof trigger === "string" ? { trigger } : {}) },
        };
    if (compaction !== null) this.#chain.complete(compaction, body);
    const words = isSummaryLast ? [{ type: "message", message: { role: "user", content: summary } }] : [];
    return this.#unit([body, ...editsOf({ kept }), ...words], value, placed);
  }

  /** The program may write a line twice; the first copy counts. */
  #repeatedLine(value: Fields, place: UnitPlace): ForeignItem {
    const id = this.#records.claim(undefined, place);
    const timestamp = this.#records.timestamp(value["timestamp"]);
    const body = { type: "custom", customType: "claude-code.repeated", data: { uuid: value["uuid"] } };
    const at = { id, parentId: this.headId, timestamp };
    return { records: [this.#records.record({ ...body, appendMode: "side" }, at)], unparsed: null };
  }

  /**
   * The program writes such lines beside the conversation, so they become side records. Unknown types are handled the
   * same way.
   */
  #otherLine(value: Fields, place: UnitPlace): ForeignItem {
    const timestamp = this.#records.timestamp(value["timestamp"]);
    const id = this.#chain.pass(value["uuid"], value["parentUuid"], place);
    const data = fieldsWithout(value, new Set(["type", "uuid", "timestamp"]));
    return this.#records.side(value["type"], data, { id, parentId: this.headId, timestamp });
  }

  #link(value: Fields, fields: Pick<ChainLink, "kind" | "messageId" | "answered">): ChainLink {
    const { uuid, parentUuid, type, teamName, attachment } = value;
    const isSidechain = isOfSubAgent(value);
    const isBriefing = isFields(attachment) && attachment["type"] === "fork_briefing";
    const isAside = isSidechain && this.#isSidechain !== true;
    const mayEnd = !isAside && teamName === undefined && type !== "progress" && !isBriefing;
    return { ...fields, uuid, parentUuid, isSidechain, mayEnd };
  }

  #answeredReply({ sourceToolAssistantUUID }: Fields, ids: readonly string[]): Reply | null {
    const named = this.#chain.replyOf(sourceToolAssistantUUID);
    return named ?? ids.map((id) => this.#calls.get(id)?.reply).find((reply) => reply !== undefined) ?? null;
  }

  #place(link: ChainLink, value: Fields, place: UnitPlace): PlacedLine {
    const chainPlace = this.#chain.add(link, place);
    // A continued session begins with lines whose parents are in the file of the earlier session, so those give no
    // finding.
    if (chainPlace.isOrphan && (chainPlace.parentId !== null || this.#facts.hasBegun))
      this.#records.tellOrphan(link.parentUuid, chainPlace.id, place);
    if (chainPlace.prelude[0]?.type === "reset") {
      const message =
        "A message follows the beginning of a compacted context in place of its summary: nothing before it counts.";
      this.#records.log.add("COMPACTION_DANGLING", message, { line: place.line, recordId: chainPlace.id });
    }
    this.#facts.begin(value);
    return { chainPlace, timestamp: this.#records.timestamp(value["timestamp"]) };
  }

  #customUnit(value: Fields, placed: PlacedLine): ForeignItem {
    const data = fieldsWithout(value, dataOmits);
    return this.#unit([{ type: "custom", customType: this.#records.customType(value["type"]), data }], null, placed);
  }

  /**
   * The first body gets the line as its source. A later line that names this line as its parent links to its last main
   * record.
   */
  #unit(bodies: readonly RecordBody[], value: Fields | null, { chainPlace, timestamp }: PlacedLine): ForeignItem {
    const { id, parentId, prelude } = chainPlace;
    const made = bodies.length === 0 ? [{ type: "custom", customType: "claude-code.user" }] : bodies;
    const [first, ...others] = [...prelude, ...made] as [RecordBody, ...RecordBody[]];
    const native = value === null ? {} : this.#native.of(value);
    const record = this.#records.record({ ...first, ...native }, { id, parentId, timestamp });
    const records: [SessionRecord, ...SessionRecord[]] = [record];
    let lastId = id;
    for (const [index, body] of others.entries()) {
      const ownId = derivedId(id, index + 1);
      records.push(this.#records.derived(body, { id: ownId, parentId: lastId, timestamp }, id, index + 1));
      if (body.type !== "usage") lastId = ownId;
    }
    if (lastId !== id) this.#chain.extend(lastId);
    return { records, unparsed: null };
  }
}

interface PlacedLine {
  readonly chainPlace: ChainPlace;
  readonly timestamp: string;
}

/** The messages that a compaction kept may stand on another branch than its boundary. */
function withParent(placed: PlacedLine, parentId: string | null): PlacedLine {
  return parentId === null ? placed : { ...placed, chainPlace: { ...placed.chainPlace, parentId } };
}

const dataOmits: ReadonlySet<string> = new Set([
  "type",
  "uuid",
  "parentUuid",
  "timestamp",
  "sessionId",
  "cwd",
  "version",
  "gitBranch",
  "userType",
  "entrypoint",
]);

/** The program's printed output has no `isSidechain`. A line of a sub-agent names the call that started it. */
function isOfSubAgent({ isSidechain, parent_tool_use_id: callId }: Fields): boolean {
  return isSidechain === true || typeof callId === "string";
}

function isBoundary({ type, subtype }: Fields): boolean {
  return type === "compact_boundary" || (type === "system" && subtype === "compact_boundary");
}

/** A person may type while the model works. The program sends that prompt with the next request. */
function queuedPrompt({ attachment }: Fields): unknown {
  if (!isFields(attachment) || attachment["type"] !== "queued_command" || attachment["isMeta"] === true) return null;
  const { prompt } = attachment;
  return typeof prompt === "string" || Array.isArray(prompt) ? prompt : null;
}

function contentOf(message: unknown): unknown {
  return isFields(message) ? message["content"] : undefined;
}
