import { isFields, type Fields } from "@throughline/core/internal";
import type { ReplayResult, ReplaySource, ReplayTurn, ReplayUserBlock } from "@throughline/history/internal";
import type { TurnWriter } from "../live/live-format.ts";

/**
 * Each turn gives complete messages of a prompt, so `close` adds none.
 * @param version of the provider specification; 3 and 4 have different forms of files
 */
export function createPromptTurns(version: 3 | 4): TurnWriter {
  return { turn: (turn) => messagesOf(turn, version), close: () => [] };
}

/**
 * Returns a message of a prompt in the form of a provider specification. Files differ between the versions, and a
 * stored message holds URLs as text.
 */
export function promptMessageFor(message: Fields, version: 3 | 4): Fields {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  return { ...message, content: (content as readonly Fields[]).map((part) => partFor(part, version)) };
}

function partFor(part: Fields, version: 3 | 4): Fields {
  const { type, data } = part;
  if (type !== "file") return part;
  const [kind, given] = isFields(data) ? [data["type"], data[data["type"] === "url" ? "url" : "data"]] : [null, data];
  if (typeof given !== "string" || (kind !== null && kind !== "url" && kind !== "data")) return part;
  const url = kind === "data" || !/^https?:/.test(given.slice(0, 6)) ? null : URL.parse(given);
  if (version === 3) return { ...part, data: url ?? given };
  return { ...part, data: url === null ? { type: "data", data: given } : { type: "url", url } };
}

function messagesOf(turn: ReplayTurn, version: 3 | 4): readonly Fields[] {
  if (turn.role === "system") return [{ role: "system", content: turn.text }];
  if (turn.role === "assistant") {
    const content = turn.blocks.flatMap((block): readonly Fields[] => {
      if (block.type === "text") return [{ type: "text", text: block.text }];
      if (block.type !== "toolCall") return [];
      return [{ type: "tool-call", toolCallId: block.id, toolName: block.name, input: block.arguments }];
    });
    return content.length === 0 ? [] : [{ role: "assistant", content }];
  }
  const results = turn.results.map((result) => resultPart(result, version));
  const said = turn.blocks.flatMap((block) => userPart(block, version));
  return [
    ...(results.length === 0 ? [] : [{ role: "tool", content: results }]),
    ...(said.length === 0 ? [] : [{ role: "user", content: said }]),
  ];
}

function userPart(block: ReplayUserBlock, version: 3 | 4): readonly Fields[] {
  if (block.type === "text") return [{ type: "text", text: block.text }];
  if (block.type === "raw") return [];
  const named = block.type === "file" && block.name !== null ? { filename: block.name } : {};
  const mediaType = mediaTypeOf(block.source, block.type);
  return [{ type: "file", mediaType, data: dataOf(block.source, version), ...named }];
}

function mediaTypeOf(source: ReplaySource, kind: "image" | "file"): string {
  if (source.type === "base64") return source.media_type;
  return kind === "image" ? "image/*" : "application/pdf";
}

function dataOf(source: ReplaySource, version: 3 | 4): unknown {
  if (source.type === "base64") return version === 3 ? source.data : { type: "data", data: source.data };
  const url = URL.parse(source.url);
  return version === 3 ? (url ?? source.url) : { type: "url", url: url ?? source.url };
}

function resultPart({ callId, name, content, isError }: ReplayResult, version: 3 | 4): Fields {
  const isText = content.every(({ type }) => type === "text");
  const text = content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  const output =
    isText || isError
      ? { type: isError ? "error-text" : "text", value: text }
      : { type: "content", value: content.flatMap((block) => resultBlock(block, version)) };
  return { type: "tool-result", toolCallId: callId, toolName: name, output };
}

function resultBlock(block: ReplayUserBlock, version: 3 | 4): readonly Fields[] {
  if (block.type === "text") return [{ type: "text", text: block.text }];
  if (block.type === "raw") return [];
  const mediaType = mediaTypeOf(block.source, block.type);
  if (version === 4) return [{ type: "file", mediaType, data: dataOf(block.source, 4) }];
  return block.source.type === "url"
    ? [{ type: "image-url", url: block.source.url }]
    : [{ type: "image-data", data: block.source.data, mediaType }];
}
