import { isFields, type Fields } from "@throughline/core/internal";
import { asText, shownText } from "../as-text.ts";
import type { Finding } from "@throughline/core";
import type { RecordSource } from "@throughline/core/internal";
import type { ForeignReader, ForeignReaderOptions, ForeignItem, UnitPlace } from "../foreign-format.ts";
import { partOf } from "../mapped-messages.ts";
import { repositoryFields } from "../repository-fields.ts";
import { provider, RunUsage } from "./run-usage.ts";
import { fieldsWithout, UnitRecords, type RecordBody } from "../unit-records.ts";

export function createCopilotCliReader(options: ForeignReaderOptions): ForeignReader {
  return new CopilotCliReader(options);
}

class CopilotCliReader implements ForeignReader {
  headId: string | null = null;
  sessionId: string | null = null;
  readonly spawnedBy = null;
  readonly #records: UnitRecords;
  readonly #entry = new Map<string, unknown>();
  readonly #runs = new RunUsage();
  /** The map holds the tool names of all calls, so that a repeated request is recognized. */
  readonly #toolNames = new Map<string, string>();
  /** Older files state calls only at their execution. Those calls join this reply. */
  #replyId: string | null = null;

  constructor(options: ForeignReaderOptions) {
    this.#records = new UnitRecords("copilot-cli", options);
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
    const { type, id: stated, timestamp: time, agentId } = value;
    const data = isFields(value["data"]) ? value["data"] : {};
    const at = { id: this.#records.claim(stated, place), timestamp: this.#records.timestamp(time) };
    this.#note(type, data);
    // A sub-agent writes into the same file, but its events are not part of this conversation.
    const bodies = agentId === undefined ? this.#bodies(type, data, at.id) : [];
    if (bodies === null) this.#records.tellUnreadable("event", at.id, place);
    if (bodies === null || bodies.length === 0)
      return this.#records.side(type, fieldsWithout(value, envelope), { ...at, parentId: this.headId });
    const opened = this.#records.open({ ...at, headId: this.headId });
    for (const body of bodies) opened.add(body);
    this.headId = opened.headId;
    return opened.close();
  }

  finish(): readonly Finding[] {
    this.#records.log.finish();
    return this.findings;
  }

  #note(type: unknown, { sessionId, context, title }: Fields): void {
    if (type !== "session.start" && type !== "session.resume" && type !== "session.title_changed") return;
    if (typeof sessionId === "string" && sessionId !== "") this.sessionId ??= sessionId;
    const { cwd, repository, branch } = isFields(context) ? context : {};
    if (typeof cwd === "string" && cwd !== "" && !this.#entry.has("cwd")) this.#entry.set("cwd", cwd);
    const fields = Object.entries(repositoryFields(repository, branch));
    for (const [name, value] of fields) this.#entry.set(name, value);
    if (typeof title !== "string" || title.trim() === "") return;
    this.#entry.set("title", title.trim());
    this.#entry.set("titleBy", "import");
  }

  /** An empty list means that the event is not part of the conversation. Null means that it cannot be read. */
  #bodies(type: unknown, data: Fields, id: string): readonly RecordBody[] | null {
    switch (type) {
      case "system.message":
        return textMessage("system", data["content"], fieldsWithout(data, new Set(["role", "content"])));
      case "user.message": {
        this.#replyId = null;
        // The program may add text to the person's prompt. The model got the transformed content, so the record holds
        // that.
        const { content, transformedContent: sent } = data;
        return textMessage(
          "user",
          typeof sent === "string" ? sent : content,
          fieldsWithout(data, new Set(["transformedContent"])),
        );
      }
      case "assistant.message":
        return this.#reply(data, id);
      case "tool.execution_start":
        return this.#call(data);
      case "tool.execution_complete":
        return this.#result(data);
      case "session.shutdown":
        return this.#runs.recordsOf(data);
      default:
        return [];
    }
  }

  #reply(data: Fields, id: string): readonly RecordBody[] {
    const { content, toolRequests, reasoningText: thinking, reasoningOpaque: signature, model, messageId } = data;
    const calls = (Array.isArray(toolRequests) ? (toolRequests as readonly unknown[]) : []).filter(isFields);
    const signed = typeof signature === "string" && signature !== "" ? { thinkingSignature: signature } : {};
    const [words, text] = [shownText(thinking), shownText(content)];
    const blocks = [
      ...(words === "" && Object.keys(signed).length === 0 ? [] : [{ type: "thinking", thinking: words, ...signed }]),
      ...(text === "" ? [] : [{ type: "text", text }]),
      ...calls.flatMap(({ toolCallId, name, arguments: given }) => this.#callBlock(toolCallId, name, given)),
    ];
    this.#replyId = typeof messageId === "string" && messageId !== "" ? messageId : id;
    if (blocks.length === 0) return [];
    const native = fieldsWithout(data, readFields);
    return [{ ...partOf(replyBody(blocks, model), this.#replyId, false), native }];
  }

  /**
   * Older files state the request of a call only here, so a call that no message requested becomes a part of the reply.
   */
  #call({ toolCallId, toolName, arguments: given, model }: Fields): readonly RecordBody[] {
    if (this.#toolNames.has(asText(toolCallId))) return [];
    const blocks = this.#callBlock(toolCallId, toolName, given);
    const [block] = blocks;
    if (block === undefined) return [];
    this.#replyId ??= asText(toolCallId);
    return [partOf(replyBody(blocks, model), this.#replyId, true)];
  }

  #callBlock(id: unknown, name: unknown, given: unknown): readonly Fields[] {
    if (typeof id !== "string" || id === "" || typeof name !== "string" || this.#toolNames.has(id)) return [];
    this.#toolNames.set(id, name);
    const call = { type: "toolCall", id, name };
    if (isFields(given)) return [{ ...call, arguments: given }];
    return [{ ...call, arguments: {}, ...(typeof given === "string" ? { partialJson: given } : {}) }];
  }

  #result({ toolCallId, success, result, error }: Fields): readonly RecordBody[] {
    const toolName = this.#toolNames.get(asText(toolCallId));
    if (typeof toolCallId !== "string" || toolName === undefined) return [];
    const content = isFields(result) && "content" in result ? result["content"] : result;
    const failure = isFields(error) && "message" in error ? error["message"] : error;
    const text = shownText(content ?? failure);
    const message = { role: "toolResult", toolCallId, toolName, content: text, isError: success === false };
    return [{ type: "message", message }];
  }
}

const envelope: ReadonlySet<string> = new Set(["type", "id", "parentId", "timestamp"]);
const readFields: ReadonlySet<string> = new Set([
  "content",
  "reasoningText",
  "reasoningOpaque",
  "model",
  "messageId",
  "toolRequests",
]);

function textMessage(role: "system" | "user", content: unknown, native: Fields): readonly RecordBody[] | null {
  if (typeof content !== "string") return null;
  return [{ type: "message", native, message: { role, content } }];
}

function replyBody(content: readonly Fields[], model: unknown): RecordBody {
  const isCalling = content.some(({ type }) => type === "toolCall");
  const author = { provider, ...(typeof model === "string" && model !== "" ? { model } : {}) };
  return {
    type: "message",
    message: { role: "assistant", content, ...author, ...(isCalling ? { stopReason: "toolUse" } : {}) },
  };
}
