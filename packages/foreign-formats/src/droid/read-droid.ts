import type { Finding } from "@throughline/core";
import { isFields, type Fields, type RecordSource } from "@throughline/core/internal";
import { shownText } from "../as-text.ts";
import { blockBodies, hasSignature, isClaude } from "../block-messages.ts";
import type { ForeignItem, ForeignReader, ForeignReaderOptions, UnitPlace } from "../foreign-format.ts";
import { asideBody, callsOf } from "../mapped-messages.ts";
import { fieldsWithout, UnitRecords, type RecordBody } from "../unit-records.ts";

export function createDroidReader(options: ForeignReaderOptions): ForeignReader {
  return new DroidReader(options);
}

const envelope: ReadonlySet<string> = new Set(["id", "timestamp", "message"]);

class DroidReader implements ForeignReader {
  headId: string | null = null;
  sessionId: string | null = null;
  spawnedBy: string | null = null;
  readonly #records: UnitRecords;
  readonly #entry = new Map<string, unknown>();
  readonly #toolNames = new Map<string, string>();
  #hasCompaction = false;

  constructor(options: ForeignReaderOptions) {
    this.#records = new UnitRecords("droid", options);
  }

  get findings(): readonly Finding[] {
    return this.#records.log.findings;
  }

  get entry(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(this.#entry);
  }

  push(unit: RecordSource, place: UnitPlace): ForeignItem {
    const { value, reason } = this.#records.parse(unit, place);
    if (value === null) return this.#records.unparsed(reason ?? "malformed", place, this.headId);
    const { type, id: stated, timestamp: time } = value;
    if (type === "session_start") this.#begin(value);
    // The id of the first line is that of the session.
    const id = this.#records.claim(type === "session_start" ? undefined : stated, place);
    const at = { id, timestamp: this.#records.timestamp(time) };
    if (type === "compaction_state") this.#compacted(id, place);
    const bodies = type === "message" ? this.#bodies(value) : [];
    if (bodies === null) this.#records.tellUnreadable("message", id, place);
    if (bodies === null || bodies.length === 0)
      return this.#records.side(type, value, { ...at, parentId: this.headId });
    const opened = this.#records.open({ ...at, headId: this.headId });
    for (const body of bodies) opened.add(this.#named(body));
    this.headId = opened.headId;
    return opened.close();
  }

  finish(): readonly Finding[] {
    this.#records.log.finish();
    return this.findings;
  }

  #begin({ id, title, sessionTitle, cwd, callingSessionId }: Fields): void {
    if (typeof id === "string" && id !== "") this.sessionId ??= id;
    if (typeof callingSessionId === "string" && callingSessionId !== "") this.spawnedBy ??= callingSessionId;
    if (typeof cwd === "string" && cwd !== "" && !this.#entry.has("cwd")) this.#entry.set("cwd", cwd);
    const name = [sessionTitle, title].find((text) => typeof text === "string" && text.trim() !== "");
    if (typeof name !== "string") return;
    this.#entry.set("title", name.trim());
    this.#entry.set("titleBy", "import");
  }

  /** An empty list means that no model gets the message. Null means that it cannot be read. */
  #bodies(value: Fields): readonly RecordBody[] | null {
    const { message } = value;
    if (!isFields(message)) return null;
    const { role, content, visibility, hookEventName, modelId } = message;
    if (role !== "user" && role !== "assistant") return null;
    if (visibility === "user_only" || hookEventName !== undefined) return [];
    const blocks = blocksOf(content);
    if (blocks === null) return null;
    const isSigned = role === "assistant" && hasSignature(blocks) && isClaude(modelId);
    const given = { role, content: blocks.length === 0 ? "" : blocks };
    const bodies = blockBodies([given], { model: modelId }, isSigned);
    const native = { ...fieldsWithout(value, envelope), message: fieldsWithout(message, new Set(["role", "content"])) };
    return (
      bodies?.map((body, index) => {
        const own = visibility === "llm_only" ? asideBody(body, "droid.context") : body;
        return index > 0 ? own : { ...own, native };
      }) ?? null
    );
  }

  /** Which messages the summary stands for is not known. */
  #compacted(recordId: string, { line, byteOffset }: UnitPlace): void {
    if (this.#hasCompaction) return;
    this.#hasCompaction = true;
    const message =
      "Droid sends a summary in place of older messages from this line on; here all of them are in the context.";
    this.#records.log.add("SOURCE_UNREAD", message, { line, byteOffset, recordId });
  }

  /** A result does not state its tool, so the name comes from the call. */
  #named(body: RecordBody): RecordBody {
    const message = body["message"] as Fields | undefined;
    for (const { id, name } of callsOf(message?.["content"])) this.#toolNames.set(id, name);
    if (message?.["role"] !== "toolResult") return body;
    const toolName = this.#toolNames.get(shownText(message["toolCallId"]));
    return toolName === undefined ? body : { ...body, message: { ...message, toolName } };
  }
}

/** Returns Anthropic's blocks; null when the content is no list. */
function blocksOf(content: unknown): readonly Fields[] | null {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) return null;
  return (content as readonly unknown[]).map((block) =>
    isFields(block) ? block : { type: "text", text: shownText(block) },
  );
}
