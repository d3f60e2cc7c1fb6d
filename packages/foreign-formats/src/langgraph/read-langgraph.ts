import type { Fields, RecordSource } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import type { Finding } from "@throughline/core";
import type { ForeignReader, ForeignReaderOptions, ForeignItem, UnitPlace } from "../foreign-format.ts";
import { fieldsWithout, UnitRecords, type RecordBody } from "../unit-records.ts";
import { readMessage } from "./langgraph-messages.ts";

export function createLanggraphReader(options: ForeignReaderOptions): ForeignReader {
  return new LanggraphReader(options);
}

interface ReadCheckpoint {
  readonly headId: string | null;
}

class LanggraphReader implements ForeignReader {
  headId: string | null = null;
  readonly entry = {};
  readonly sessionId = null;
  readonly spawnedBy = null;
  readonly #records: UnitRecords;
  readonly #checkpoints = new Map<string, ReadCheckpoint>();
  readonly #toolNames = new Map<string, string>();

  constructor(options: ForeignReaderOptions) {
    this.#records = new UnitRecords("langgraph", options);
  }

  get findings(): readonly Finding[] {
    return this.#records.log.findings;
  }

  push(unit: RecordSource, place: UnitPlace): ForeignItem {
    const { value, reason } = this.#records.parse(unit, place);
    if (value === null) return this.#records.unparsed(reason ?? "malformed", place, this.headId);
    const { id, ns, ts } = value;
    const at = { id: this.#records.claim(id, place), timestamp: this.#records.timestamp(ts) };
    const beside = { ...at, parentId: this.headId };
    // Sub-graphs have a namespace of their own. Their messages are not part of the conversation.
    if (typeof id !== "string" || ns !== "") return this.#records.side("checkpoint", value, beside);
    if (value["unread"] === true) {
      this.#records.tellUnreadable("checkpoint", at.id, place);
      return this.#records.side("checkpoint", value, beside);
    }
    return this.#checkpoint(value, id, at);
  }

  finish(): readonly Finding[] {
    this.#records.log.finish();
    return this.findings;
  }

  /**
   * The messages of a checkpoint follow those of its parent. Lines are ordered by id, so the last checkpoint is the
   * current one.
   */
  #checkpoint(value: Fields, id: string, at: { readonly id: string; readonly timestamp: string }): ForeignItem {
    const { parent, messages, replaces } = value;
    const before = this.#checkpoints.get(asText(parent))?.headId ?? null;
    const unit = this.#records.open({ ...at, headId: before });
    const data = fieldsWithout(value, new Set(["messages"]));
    unit.add({ type: "custom", customType: this.#records.customType("checkpoint"), appendMode: "side", data });
    if (replaces === true) unit.add({ type: "reset", reason: "langgraph.checkpoint" });
    for (const message of Array.isArray(messages) ? (messages as readonly unknown[]) : [])
      for (const body of readMessage(message)) unit.add(this.#named(body));
    this.#checkpoints.set(id, { headId: unit.headId });
    this.headId = unit.headId;
    return unit.close();
  }

  #named(body: RecordBody): RecordBody {
    const message = body["message"] as Fields;
    const { role, content, toolCallId, toolName } = message;
    if (role === "assistant" && Array.isArray(content)) {
      for (const block of content as readonly Fields[])
        if (block["type"] === "toolCall") this.#toolNames.set(asText(block["id"]), asText(block["name"]));
    }
    if (role !== "toolResult" || toolName !== undefined) return body;
    const known = this.#toolNames.get(asText(toolCallId));
    return known === undefined ? body : { ...body, message: { ...message, toolName: known } };
  }
}
