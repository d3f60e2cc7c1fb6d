import { throughlineKind, isFields, type Fields } from "@throughline/core/internal";
import type { BashExecutionMessage } from "@throughline/core/internal";
import type { SessionRecord, StoredRecord, Usage } from "@throughline/core";
import { bashExecutionText, redactedText } from "./message-texts.ts";
import type { NeutralBlock, NeutralMessage, NeutralToolCall } from "./neutral-message.ts";

/**
 * Returns the message that a record adds, or null for types that add none. The caller must have checked the structure
 * of the record.
 */
export function neutralFromRecord(
  stored: StoredRecord,
  record: SessionRecord,
  isPrefixChanged: boolean,
): NeutralMessage | null {
  switch (record.type) {
    case "message":
      return fromMessage(stored, record["message"] as Fields, isPrefixChanged);
    case "custom_message":
      return {
        role: "custom",
        ...baseOf(stored, isPrefixChanged),
        customType: text(record["customType"]),
        content: blocks(record["content"]),
      };
    case "branch_summary": {
      const summary = text(record["summary"]) ?? "";
      if (summary === "") return null;
      const base = baseOf(stored, isPrefixChanged);
      return { role: "branchSummary", ...base, fromId: text(record["fromId"]) ?? "", content: textBlocks(summary) };
    }
    case "custom": {
      if (throughlineKind(record) !== "redaction") return null;
      const originalType = text((record["data"] as Fields | undefined)?.["originalType"]) ?? "message";
      if (!redactedTypes.has(originalType)) return null;
      return { role: "redacted", ...baseOf(stored, isPrefixChanged), originalType, content: textBlocks(redactedText) };
    }
    default:
      return null;
  }
}

const redactedTypes: ReadonlySet<string> = new Set(["message", "custom_message", "branch_summary"]);

type Base = Pick<NeutralMessage, "recordId" | "seq" | "tsMs" | "isPrefixChanged">;

function baseOf({ id, seq, tsMs }: StoredRecord, isPrefixChanged: boolean): Base {
  return { recordId: id, seq, tsMs, isPrefixChanged };
}

/** The three main roles copy field by field, because for thousands of records a spread takes longer than the rest. */
function fromMessage(stored: StoredRecord, message: Fields, isPrefixChanged: boolean): NeutralMessage {
  const { id: recordId, seq, tsMs } = stored;
  const role = message["role"] as string;
  switch (role) {
    case "user":
      return { role, recordId, seq, tsMs, isPrefixChanged, content: blocks(message["content"]) };
    case "assistant":
      return fromAssistant(stored, message, isPrefixChanged);
    case "toolResult":
      return {
        role,
        recordId,
        seq,
        tsMs,
        isPrefixChanged,
        toolCallId: text(message["toolCallId"]) ?? "",
        toolName: text(message["toolName"]),
        isError: message["isError"] === true,
        content: blocks(message["content"]),
      };
    default:
      return fromOther(baseOf(stored, isPrefixChanged), role, message);
  }
}

function fromOther(base: Base, role: string, message: Fields): NeutralMessage {
  switch (role) {
    case "system":
    case "developer":
      return { role: "system", ...base, content: systemBlocks(message) };
    case "bashExecution":
      return {
        role,
        ...base,
        command: text(message["command"]) ?? "",
        output: text(message["output"]) ?? "",
        exitCode: typeof message["exitCode"] === "number" ? message["exitCode"] : null,
        cancelled: message["cancelled"] === true,
        truncated: message["truncated"] === true,
        fullOutputPath: text(message["fullOutputPath"]),
        // Fields of a stored message may be missing or have another type, so the formatter must check each one.
        content: textBlocks(bashExecutionText(message as unknown as BashExecutionMessage)),
      };
    case "custom":
      return { role, ...base, customType: text(message["customType"]), content: blocks(message["content"]) };
    default:
      return { role: "other", ...base, originalRole: role, content: blocks(message["content"]) };
  }
}

function fromAssistant({ id, seq, tsMs }: StoredRecord, message: Fields, isPrefixChanged: boolean): NeutralMessage {
  return {
    role: "assistant",
    recordId: id,
    seq,
    tsMs,
    isPrefixChanged,
    api: text(message["api"]),
    provider: text(message["provider"]),
    model: text(message["model"]),
    stopReason: text(message["stopReason"]),
    errorMessage: text(message["errorMessage"]),
    responseId: text(message["responseId"]),
    // The numbers stay unchecked, exactly as the writer of the record stored them.
    usage: isFields(message["usage"]) ? (message["usage"] as unknown as Usage) : null,
    isFragment: message["fragment"] === true,
    content: blocks(message["content"]),
  };
}

/** pi writes a system message in named sections. A null section removes an earlier one. */
function systemBlocks(message: Fields): readonly NeutralBlock[] {
  const content = blocks(message["content"]);
  const { sections } = message;
  if (content.length > 0 || !isFields(sections)) return content;
  return Object.values(sections).flatMap((section) => blocks(isFields(section) ? section["content"] : section));
}

function blocks(content: unknown): readonly NeutralBlock[] {
  if (typeof content === "string") return textBlocks(content);
  if (!Array.isArray(content)) return [];
  const given = content as readonly unknown[];
  const [only] = given;
  // Most messages have one block, and a growing list would allocate room for more, so this case is separate.
  if (given.length === 1) return isFields(only) ? [fromBlock(only)] : [];
  return given.filter(isFields).map(fromBlock);
}

function textBlocks(content: string): readonly NeutralBlock[] {
  return content === "" ? [] : [{ type: "text", text: content }];
}

function fromBlock(block: Fields): NeutralBlock {
  const type = block["type"];
  if (type === "text" && typeof block["text"] === "string") {
    const signature = signatureOf(block["textSignature"]);
    return signature === null ? { type, text: block["text"] } : { type, text: block["text"], signature };
  }
  if (type === "thinking") {
    return {
      type,
      thinking: text(block["thinking"]) ?? "",
      signature: text(block["thinkingSignature"]),
      redacted: block["redacted"] === true,
    };
  }
  if (type === "image") {
    const source = isFields(block["source"]) ? block["source"] : null;
    return { type, data: text(block["data"]), mimeType: text(block["mimeType"]), source };
  }
  return toolCall(block) ?? { type: "unknown", originalType: text(type) ?? "", block };
}

// OpenClaw accepts these type names too, because sessions from other agents contain them.
const callTypes: ReadonlySet<unknown> = new Set(["toolCall", "toolUse", "functionCall", "tool_use"]);

function toolCall(block: Fields): NeutralToolCall | null {
  const { type, id, name } = block;
  const given = block["arguments"] ?? block["input"];
  if (!callTypes.has(type) || typeof id !== "string" || typeof name !== "string" || !isFields(given)) return null;
  const partialJson = text(block["partialJson"]);
  const unread = partialJson === null ? {} : { partialJson };
  const call: NeutralToolCall = { type: "toolCall", id, name, arguments: given, ...unread };
  const signature = signatureOf(block["thoughtSignature"]);
  return signature === null ? call : { ...call, signature };
}

function signatureOf(signature: unknown): string | null {
  return typeof signature === "string" && signature !== "" ? signature : null;
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
