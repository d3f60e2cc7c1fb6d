import { sizeText } from "../counted.ts";
import type { AssistantMessage, StoredRecord, ToolResultMessage } from "@throughline/core";
import { blocksText } from "@throughline/core/internal";

export interface ToolLine {
  readonly name: string;
  /** Holds the `path` argument if there is one, else all arguments as JSON. */
  readonly target: string;
  readonly isError: boolean;
  /** Counts the bytes of the result's text. */
  readonly sizeBytes: number;
  readonly durationMs: number;
}

/** Returns for example `read src/a.ts (3.1 kB, 12 ms)`. */
export function toolLineText({ name, target, isError, sizeBytes, durationMs }: ToolLine): string {
  const time = durationMs < 1000 ? `${Math.round(durationMs)} ms` : `${(durationMs / 1000).toFixed(1)} s`;
  return `${name}${target === "" ? "" : ` ${target}`} (${isError ? "failed, " : ""}${sizeText(sizeBytes)}, ${time})`;
}

export interface ToolLines {
  /** Counts the time of a call from now on, not from its question to a person. */
  started(callId: string, nowMs: number): void;
  /** Returns null for a record that is no tool result. */
  take(record: StoredRecord, nowMs: number): ToolLine | null;
}

const mostTargetCharacters = 60;

export function createToolLines(): ToolLines {
  const calls = new Map<string, { readonly target: string; readonly sinceMs: number }>();
  return {
    started: (callId, nowMs) => {
      const call = calls.get(callId);
      if (call !== undefined) calls.set(callId, { ...call, sinceMs: nowMs });
    },
    take: ({ record, type }, nowMs) => {
      const message = type === "message" ? (record["message"] as AssistantMessage | ToolResultMessage) : null;
      for (const { id, target } of toolTargets(record)) calls.set(id, { target, sinceMs: nowMs });
      if (message?.role !== "toolResult") return null;
      const call = calls.get(message.toolCallId);
      return {
        name: message.toolName ?? "tool",
        target: call?.target ?? "",
        isError: message.isError === true,
        sizeBytes: Buffer.byteLength(blocksText(message.content)),
        durationMs: call === undefined ? 0 : nowMs - call.sinceMs,
      };
    },
  };
}

/** Returns the calls of a reply, each with what it is about. */
export function toolTargets(
  record: StoredRecord["record"],
): readonly { readonly id: string; readonly target: string }[] {
  const { role, content } = (record["message"] ?? {}) as Partial<AssistantMessage>;
  if (role !== "assistant" || !Array.isArray(content)) return [];
  return content.flatMap((block) => {
    if (block.type !== "toolCall") return [];
    const { id, arguments: args } = block as { readonly id: string; readonly arguments: unknown };
    return [{ id, target: targetText(args) }];
  });
}

function targetText(args: unknown): string {
  if (typeof args !== "object" || args === null) return "";
  const { path } = args as { readonly path?: unknown };
  const text = typeof path === "string" ? path : Object.keys(args).length === 0 ? "" : JSON.stringify(args);
  return text.length <= mostTargetCharacters ? text : `${text.slice(0, mostTargetCharacters).toWellFormed()}…`;
}
