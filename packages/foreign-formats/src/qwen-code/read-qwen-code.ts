import type { Finding } from "@throughline/core";
import { isFields, type Fields, type RecordSource } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import type { ForeignItem, ForeignReader, ForeignReaderOptions, UnitPlace } from "../foreign-format.ts";
import { asideBody } from "../mapped-messages.ts";
import { fieldsWithout, UnitRecords, type RecordBody } from "../unit-records.ts";
import { contentBodies, replyBodies, saidBodies, usageOfEvent } from "./qwen-messages.ts";
import { SessionFacts } from "./session-facts.ts";

export function createQwenCodeReader(options: ForeignReaderOptions): ForeignReader {
  return new QwenCodeReader(options);
}

/**
 * A compressed history may be long, but its records form one item that is stored in one append. Only this many of its
 * newest contents are kept.
 */
const mostReplacements = 400;

/** The program leaves these lines out of the tree, so a resumed session never follows one of them. */
const asideSubtypes: ReadonlySet<unknown> = new Set([
  "session_artifact_event",
  "session_artifact_snapshot",
  "session_sources_snapshot",
  "managed_session_header_v1",
  "managed_session_event_v1",
  "managed_session_commit_v1",
]);
/** The program never sends these lines to a model, although they hold a message. */
const unsentSubtypes: ReadonlySet<unknown> = new Set(["realtime_message", "code_mode_tool_result"]);
/** A person wrote these lines. Any other subtype marks text that the program wrote for the model. */
const personSubtypes: ReadonlySet<unknown> = new Set([undefined, "mid_turn_user_message"]);

class QwenCodeReader implements ForeignReader {
  headId: string | null = null;
  readonly #records: UnitRecords;
  readonly #facts: SessionFacts;
  /** Each line with an id has the head after it here. A line that names it as parent continues from that head. */
  readonly #heads: (string | null)[] = [];
  #hasGap = false;
  #lastUnit: RecordSource = "";
  /** The newest line is a person's text, and a later line may state that it was a command of the program. */
  #lastPrompt: { readonly text: string; readonly headBefore: string | null } | null = null;

  constructor(options: ForeignReaderOptions) {
    this.#records = new UnitRecords("qwen-code", options);
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

  push(unit: RecordSource, place: UnitPlace): ForeignItem {
    const { value, reason } = this.#records.parse(unit, place);
    if (value === null) {
      this.#hasGap ||= reason !== "blank";
      return this.#records.unparsed(reason ?? "malformed", place, this.headId);
    }
    const isRepeated = unit === this.#lastUnit;
    this.#lastUnit = unit;
    this.#facts.take(value);
    const timestamp = this.#records.timestamp(value["timestamp"]);
    if (isRepeated) return this.#repeated(value, timestamp, place);
    const line = this.#placed(value, timestamp, place);
    const item = this.#read(line);
    if (line.number >= 0) this.#heads[line.number] = line.headAfter;
    return item;
  }

  finish(): readonly Finding[] {
    this.#records.log.finish();
    return this.findings;
  }

  #read(line: Line): ForeignItem {
    const { value } = line;
    const prompt = this.#lastPrompt;
    if (value["type"] !== "system") this.#lastPrompt = null;
    switch (value["type"]) {
      case "user":
        return this.#said(line);
      case "tool_result":
        return this.#message(line, saidBodies(value["message"], value["toolCallResult"]));
      case "assistant":
        return this.#message(line, replyBodies(value["message"], replyFacts(line)));
      case "system":
        return this.#system(line, prompt);
      default:
        return this.#side(line);
    }
  }

  #said(line: Line): ForeignItem {
    const { value, headBefore } = line;
    const { subtype, message } = value;
    const bodies = saidBodies(message, null);
    if (!personSubtypes.has(subtype))
      return this.#message(line, bodies?.map((body) => asideBody(body, asideType(subtype))) ?? null);
    if (subtype === undefined) this.#lastPrompt = { text: onlyText(message), headBefore };
    return this.#message(line, bodies);
  }

  #message(line: Line, bodies: readonly RecordBody[] | null): ForeignItem {
    const { id, timestamp, headBefore, value, place } = line;
    if (bodies === null && value["message"] !== undefined) this.#records.tellUnreadable("message", id, place);
    if (bodies === null || bodies.length === 0 || unsentSubtypes.has(value["subtype"])) return this.#side(line);
    const unit = this.#records.open({ id, timestamp, headId: headBefore });
    for (const body of bodies) unit.add(body);
    this.headId = unit.headId;
    line.headAfter = unit.headId;
    return unit.close();
  }

  #system(line: Line, prompt: { readonly text: string; readonly headBefore: string | null } | null): ForeignItem {
    const { value } = line;
    const payload = isFields(value["systemPayload"]) ? value["systemPayload"] : {};
    switch (value["subtype"]) {
      case "chat_compression":
        return this.#replaced(
          line,
          payload["compressedHistory"],
          fieldsWithout(payload, new Set(["compressedHistory"])),
        );
      case "agent_bootstrap":
        return this.#replaced(line, payload["history"], fieldsWithout(payload, new Set(["history"])));
      case "ui_telemetry":
        return this.#telemetry(line, payload["uiEvent"]);
      case "slash_command":
        this.#lastPrompt = null;
        if (prompt !== null && isLocalResult(payload, prompt.text)) line.headAfter = prompt.headBefore;
        return this.#side(line);
      default:
        return this.#side(line);
    }
  }

  /** The list replaces the conversation for the model. The lines before stay on the branch. */
  #replaced(line: Line, history: unknown, native: Fields): ForeignItem {
    if (!Array.isArray(history)) return this.#side(line);
    const { id, timestamp, headBefore, value, place } = line;
    const contents = (history as readonly unknown[]).filter(isFields);
    if (contents.length > mostReplacements)
      this.#records.tellCut("contents", contents.length, mostReplacements, id, place);
    const unit = this.#records.open({ id, timestamp, headId: headBefore });
    unit.add({ type: "reset", reason: this.#records.customType(value["subtype"]), native });
    for (const content of contents.slice(-mostReplacements)) for (const body of contentBodies(content)) unit.add(body);
    this.headId = unit.headId;
    line.headAfter = unit.headId;
    return unit.close();
  }

  /**
   * A reply has the usage of its own call. Calls of the program for itself, such as those of a compression, are stated
   * here only.
   */
  #telemetry(line: Line, event: unknown): ForeignItem {
    const { id, timestamp, value } = line;
    if (!isFields(event) || event["event.name"] !== "qwen-code.api_response") return this.#side(line);
    const isOfReply = asText(event["prompt_id"]).startsWith(`${asText(value["sessionId"])}########`);
    const usage = isOfReply || value["isSidechain"] === true ? null : usageOfEvent(event);
    if (usage === null) return this.#side(line);
    const model = typeof event["model"] === "string" ? { model: event["model"] } : {};
    const body = { type: "usage", kind: "qwen-code.call", usage, ...model, native: event };
    return { records: [this.#records.record(body, { id, timestamp, parentId: this.headId })], unparsed: null };
  }

  /** A line that continues from an earlier place, such as a rewind, moves the head there. */
  #side(line: Line): ForeignItem {
    const { value, id, timestamp, headAfter } = line;
    const { type, subtype } = value;
    const name = type === "system" && typeof subtype === "string" ? subtype : type;
    const at = { id, timestamp, parentId: this.headId };
    if (line.number < 0 || headAfter === this.headId || asideSubtypes.has(subtype))
      return this.#records.side(name, fieldsWithout(value, envelope), at);
    const native = fieldsWithout(value, envelope);
    const record = this.#records.record({ type: "leaf", targetId: headAfter, native }, at);
    this.headId = headAfter;
    return { records: [record], unparsed: null };
  }

  /** A copy of a file may repeat its last line. The program itself never writes a line twice. */
  #repeated({ uuid }: Fields, timestamp: string, place: UnitPlace): ForeignItem {
    const at = { id: this.#records.claim(undefined, place), timestamp, parentId: this.headId };
    return this.#records.side("repeated", { uuid }, at);
  }

  #placed(value: Fields, timestamp: string, place: UnitPlace): Line {
    const { uuid, parentUuid } = value;
    if (typeof uuid !== "string" || uuid === "") {
      const id = this.#records.claim(undefined, place);
      return {
        value,
        id,
        timestamp,
        place,
        number: -1,
        isFurtherPart: false,
        headBefore: this.headId,
        headAfter: null,
      };
    }
    const known = this.#numberOf(uuid);
    const number = known ?? this.#heads.length;
    const id = this.#records.claim(uuid, place, number);
    const headBefore = known === null ? this.#headAfter(parentUuid, id, place) : (this.#heads[known] ?? null);
    if (known === null) this.#heads.push(headBefore);
    return { value, id, timestamp, place, number, isFurtherPart: known !== null, headBefore, headAfter: headBefore };
  }

  /**
   * The program stops at a parent that is nowhere in the file. After a line that cannot be read the missing parent may
   * be that line, so the line follows the head.
   */
  #headAfter(parentUuid: unknown, recordId: string, place: UnitPlace): string | null {
    if (parentUuid === null) return null;
    const number = this.#numberOf(parentUuid);
    if (number !== null) return this.#heads[number] ?? null;
    if (this.#hasGap || parentUuid === undefined) return this.headId;
    this.#records.tellOrphan(parentUuid, recordId, place);
    return null;
  }

  #numberOf(uuid: unknown): number | null {
    const number = typeof uuid === "string" ? this.#records.numberOf(uuid) : undefined;
    return number === undefined || number < 0 ? null : number;
  }
}

interface Line {
  readonly value: Fields;
  readonly id: string;
  readonly timestamp: string;
  readonly place: UnitPlace;
  /** States the number of the line's id; -1 for a line without an id. */
  readonly number: number;
  /** Lines with the same id are parts of one message. */
  readonly isFurtherPart: boolean;
  readonly headBefore: string | null;
  headAfter: string | null;
}

const envelope: ReadonlySet<string> = new Set(["uuid", "parentUuid", "sessionId", "timestamp", "cwd", "version"]);

function replyFacts({ value, isFurtherPart }: Line): Parameters<typeof replyBodies>[1] {
  const { model, usageMetadata, uuid } = value;
  return { model, usageMetadata, responseId: asText(uuid), isFurtherPart };
}

function asideType(subtype: unknown): string {
  return `qwen-code.${typeof subtype === "string" && /^[a-z_]{1,40}$/.test(subtype) ? subtype : "user"}`;
}

/** Returns the text of a message that is one text and nothing else; empty for any other. */
function onlyText(message: unknown): string {
  const parts = isFields(message) && Array.isArray(message["parts"]) ? (message["parts"] as readonly unknown[]) : [];
  const [first, ...others] = parts;
  if (others.length > 0 || !isFields(first) || Object.keys(first).length !== 1) return "";
  return asText(first["text"]);
}

/** A command that the program answered by itself is no prompt, so the model gets neither the command nor its result. */
function isLocalResult({ phase, sentToModel, rawCommand, outputHistoryItems: items }: Fields, text: string): boolean {
  if (phase !== "result" || sentToModel === true || text === "" || rawCommand !== text) return false;
  if (!Array.isArray(items) || items.length === 0) return false;
  return (items as readonly unknown[]).every((item) => isFields(item) && item["type"] === "assistant");
}
