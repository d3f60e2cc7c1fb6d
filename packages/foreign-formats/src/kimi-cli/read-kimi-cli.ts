import type { Finding } from "@throughline/core";
import { isFields, type Fields, type RecordSource } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import type { ForeignItem, ForeignReader, ForeignReaderOptions, UnitPlace } from "../foreign-format.ts";
import { callsOf, partOf } from "../mapped-messages.ts";
import { UnitRecords, type RecordBody } from "../unit-records.ts";
import { callBody, pieceBody, resultBody, saidBodies, usageOf } from "./kimi-messages.ts";
import { sessionPlace } from "./session-place.ts";

export function createKimiCliReader(options: ForeignReaderOptions): ForeignReader {
  return new KimiCliReader(options);
}

interface Line {
  readonly type: unknown;
  readonly payload: Fields;
  readonly id: string;
  readonly timestamp: string;
  readonly place: UnitPlace;
}

class KimiCliReader implements ForeignReader {
  headId: string | null = null;
  readonly sessionId: string | null;
  readonly spawnedBy: string | null;
  readonly entry: Readonly<Record<string, unknown>> = {};
  readonly #records: UnitRecords;
  readonly #toolNames = new Map<string, string>();
  /** A turn without a step was a command that the program answered itself. */
  #turn: { readonly headBefore: string | null; hasStep: boolean } | null = null;
  /** The pieces of a step are one reply. Null means that no step has begun. */
  #step: { readonly headBefore: string | null; replyId: string | null } | null = null;
  #hasCompaction = false;

  constructor(options: ForeignReaderOptions) {
    this.#records = new UnitRecords("kimi-cli", options);
    const place = sessionPlace(options.path ?? "");
    this.sessionId = place?.sessionId ?? null;
    this.spawnedBy = place?.spawnedBy ?? null;
  }

  get findings(): readonly Finding[] {
    return this.#records.log.findings;
  }

  push(unit: RecordSource, place: UnitPlace): ForeignItem {
    const { value, reason } = this.#records.parse(unit, place);
    if (value === null) return this.#records.unparsed(reason ?? "malformed", place, this.headId);
    const { timestamp: seconds, message } = value;
    const timestamp = this.#records.timestamp(typeof seconds === "number" ? seconds * 1000 : null);
    const { type, payload } = isFields(message) ? message : value;
    const line = { type, payload: isFields(payload) ? payload : {}, id: this.#records.placed(place), timestamp, place };
    return this.#read(line) ?? this.#side(line, isFields(message) ? message : value);
  }

  finish(): readonly Finding[] {
    this.#records.log.finish();
    return this.findings;
  }

  /** Null means that the line is no part of the conversation. */
  #read(line: Line): ForeignItem | null {
    switch (line.type) {
      case "TurnBegin":
        this.#step = null;
        this.#turn = { headBefore: this.headId, hasStep: false };
        return this.#said(line);
      case "SteerInput":
        this.#step = null;
        return this.#said(line);
      case "StepBegin":
        if (this.#turn !== null) this.#turn.hasStep = true;
        this.#step = { headBefore: this.headId, replyId: null };
        return null;
      case "StepRetry":
        return this.#retried(line);
      case "TurnEnd":
        return this.#ended(line);
      case "ContentPart":
      case "ToolCall":
        return this.#piece(line);
      case "ToolResult":
        return this.#result(line);
      case "StatusUpdate":
        return this.#counted(line);
      case "CompactionBegin":
        return this.#compacted(line);
      default:
        return null;
    }
  }

  #said(line: Line): ForeignItem | null {
    const bodies = saidBodies(line.payload);
    if (bodies === null) this.#records.tellUnreadable("message", line.id, line.place);
    return bodies === null || bodies.length === 0 ? null : this.#main(line, bodies);
  }

  /** Text outside a step is the program's own and never reaches a model. */
  #piece(line: Line): ForeignItem | null {
    if (this.#step === null) return null;
    const body = line.type === "ToolCall" ? callBody(line.payload) : pieceBody(line.payload);
    if (body === null) {
      this.#records.tellUnreadable("reply", line.id, line.place);
      return null;
    }
    for (const { id, name } of callsOf((body["message"] as Fields)["content"])) this.#toolNames.set(id, name);
    const isFurther = this.#step.replyId !== null;
    this.#step.replyId ??= line.id;
    return this.#main(line, [partOf(body, this.#step.replyId, isFurther)]);
  }

  #result(line: Line): ForeignItem | null {
    const toolName = this.#toolNames.get(asText(line.payload["tool_call_id"]));
    const body = resultBody(line.payload, toolName ?? "unknown");
    if (body === null) this.#records.tellUnreadable("result", line.id, line.place);
    return body === null ? null : this.#main(line, [body]);
  }

  /** The step is asked again, so nothing of the failed attempt is in the conversation. */
  #retried(line: Line): ForeignItem | null {
    const step = this.#step;
    if (step === null || step.headBefore === this.headId) return null;
    this.#step = { headBefore: step.headBefore, replyId: null };
    return this.#leaf(line, step.headBefore);
  }

  #ended(line: Line): ForeignItem | null {
    const turn = this.#turn;
    this.#turn = null;
    this.#step = null;
    return turn === null || turn.hasStep || turn.headBefore === this.headId ? null : this.#leaf(line, turn.headBefore);
  }

  #counted(line: Line): ForeignItem | null {
    const usage = usageOf(line.payload["token_usage"]);
    if (usage === null) return null;
    const body = { type: "usage", kind: "kimi-cli.call", usage, native: line.payload };
    return { records: [this.#records.record(body, this.#placeOf(line))], unparsed: null };
  }

  /** The summary is in another file, which the program writes again at each compaction. */
  #compacted({ id, place }: Line): null {
    if (this.#hasCompaction) return null;
    this.#hasCompaction = true;
    const { line, byteOffset } = place;
    const message =
      "Kimi CLI sends a summary in place of the messages before this line; here all of them are in the context.";
    this.#records.log.add("SOURCE_UNREAD", message, { line, byteOffset, recordId: id });
    return null;
  }

  #main(line: Line, bodies: readonly RecordBody[]): ForeignItem {
    const opened = this.#records.open({ id: line.id, timestamp: line.timestamp, headId: this.headId });
    for (const body of bodies) opened.add(body);
    this.headId = opened.headId;
    return opened.close();
  }

  #leaf(line: Line, targetId: string | null): ForeignItem {
    const body = { type: "leaf", targetId, native: { type: line.type, payload: line.payload } };
    const record = this.#records.record(body, this.#placeOf(line));
    this.headId = targetId;
    return { records: [record], unparsed: null };
  }

  #side(line: Line, data: Fields): ForeignItem {
    return this.#records.side(line.type, data, this.#placeOf(line));
  }

  #placeOf({ id, timestamp }: Line): {
    readonly id: string;
    readonly timestamp: string;
    readonly parentId: string | null;
  } {
    return { id, timestamp, parentId: this.headId };
  }
}
