import type { AssistantMessage, ChatModel, Summarizer } from "@throughline/core";
import { checkpointPrompt, checkpointSystem } from "./checkpoint-prompt.ts";

export interface CheckpointRequest {
  /** The conversation since the summary before, as plain text. */
  readonly text: string;
  readonly previousSummary: string | null;
  readonly maxOutputTokens: number;
  readonly signal: AbortSignal;
}

/** Writes checkpoints: gives a reply, which is read leniently. */
export interface CheckpointWriter {
  readonly name: string;
  write(request: CheckpointRequest): Promise<string>;
}

/**
 * A writer that asks a model for the parts as JSON. For models whose messages are `{role, content}`: all but Google's
 * and Bedrock's.
 */
export function chatCheckpointWriter(chat: ChatModel, modelId: string): CheckpointWriter {
  return {
    name: `${chat.provider}/${modelId}`,
    async write({ text, previousSummary, maxOutputTokens, signal }) {
      const content = checkpointPrompt(text, previousSummary);
      const { message } = await chat.chat({
        model: modelId,
        system: checkpointSystem,
        messages: [{ role: "user", content }],
        maxOutputTokens,
        signal,
      });
      return textOf(message);
    },
  };
}

/** A writer over a summariser, whose prose becomes the summary; what it finds of topics and decisions is in it. */
export function summarizerCheckpointWriter(summarizer: Summarizer, name: string): CheckpointWriter {
  return { name, write: async (request) => (await summarizer.summarize(request)).summary };
}

function textOf({ content, stopReason }: AssistantMessage): string {
  // A reply that called a tool or broke off says nothing that could be relied on.
  if (stopReason === "toolUse" || stopReason === "error" || stopReason === "aborted") return "";
  if (typeof content === "string") return content;
  return content
    .map((block) => (block.type === "text" ? String((block as { text?: unknown }).text ?? "") : ""))
    .join("");
}
