import { sizeText } from "../counted.ts";
import type { AssistantMessage, StoredRecord, ToolResultMessage } from "@throughline/core";
import { blocksText } from "@throughline/core/internal";

/** A tool call that has ended, as one line shows it. */
export interface ToolLine {
  readonly name: string;
  /** The argument that says most, or all of them. */
  readonly target: string;
  readonly isError: boolean;
  /** Of the result's text. */
  readonly sizeBytes: number;
  readonly durationMs: number;
}

/** `read src/a.ts (3.1 kB, 12 ms)`. */
export function toolLineText({ name, target, isError, sizeBytes, durationMs }: ToolLine): string {
  const time = durationMs < 1000 ? `${Math.round(durationMs)} ms` : `${(durationMs / 1000).toFixed(1)} s`;
  return `${name}${target === "" ? "" : ` ${target}`} (${isError ? "failed, " : ""}${sizeText(sizeBytes)}, ${time})`;
}

/** Puts calls and their results together as their records come by. */
export interface ToolLines {
  /** The line of the call that this record is the result of; null for every other record. */
  take(record: StoredRecord, nowMs: number): ToolLine | null;
}

const mostTargetCharacters = 60;

export function createToolLines(): ToolLines {
  const calls = new Map<string, { readonly target: string; readonly sinceMs: number }>();
  return {
    take: ({ record, type }, nowMs) => {
      const message = type === "message" ? (record["message"] as AssistantMessage | ToolResultMessage) : null;
      if (message?.role === "assistant" && Array.isArray(message.content)) {
        for (const block of message.content) {
          if (block.type !== "toolCall") continue;
          const { id, arguments: args } = block as { readonly id: string; readonly arguments: unknown };
          calls.set(id, { target: targetText(args), sinceMs: nowMs });
        }
      }
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

function targetText(args: unknown): string {
  if (typeof args !== "object" || args === null) return "";
  const { path } = args as { readonly path?: unknown };
  const text = typeof path === "string" ? path : Object.keys(args).length === 0 ? "" : JSON.stringify(args);
  return text.length <= mostTargetCharacters ? text : `${text.slice(0, mostTargetCharacters).toWellFormed()}…`;
}
