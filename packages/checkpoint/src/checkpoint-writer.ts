import {
  assertArgument,
  assertKnownOptions,
  type CallUsage,
  modelTable,
  optionKinds,
  portKinds,
  readUsage,
} from "@throughline/core/internal";
import type { AssistantMessage, Summarizer } from "@throughline/core";
import type { SessionModel } from "@throughline/core/internal";
import { checkpointPrompt, checkpointSystem } from "./checkpoint-prompt.ts";

/** What a checkpoint writer is asked to write about. */
export interface CheckpointRequest {
  /** The conversation since the summary before, as plain text. */
  readonly text: string;
  /** The summary that the new one continues; null for the first one. */
  readonly previousSummary: string | null;
  /** The longest reply, in tokens. */
  readonly maxOutputTokens: number;
  /** Aborted at the deadline and when the checkpointer closes; the reply is then dropped. */
  readonly signal: AbortSignal;
}

/** What a writer gave. */
export interface CheckpointReply {
  /** Read leniently: JSON, or prose. */
  readonly text: string;
  /** What the call cost, in tokens by kind; null where that is not known. */
  readonly usage: Readonly<Record<string, number>> | null;
}

/** Writes checkpoints. A writer that knows nothing of usage gives the text alone. */
export interface CheckpointWriter {
  /** Names the writer in events and as `model` in the record, such as `anthropic/claude-haiku-4-5`. */
  readonly name: string;
  /** Writes a checkpoint. A rejection or an empty reply passes the request to the next writer. */
  write(request: CheckpointRequest): Promise<CheckpointReply | string>;
}

/**
 * A writer that asks a model for the parts as JSON. For models whose messages are `{role, content}`: all but Google's
 * and Bedrock's.
 *
 * @throws {ThroughlineError} INPUT_INVALID for a model without `chat` or `modelId`
 */
export function chatCheckpointWriter(model: SessionModel): CheckpointWriter {
  assertKnownOptions<SessionModel>("chatCheckpointWriter", model, modelTable, "model");
  const { chat, modelId } = model;
  return {
    name: `${chat.provider}/${modelId}`,
    async write({ text, previousSummary, maxOutputTokens, signal }) {
      const content = checkpointPrompt(text, previousSummary);
      const reply = await chat.chat({
        modelId,
        system: checkpointSystem,
        messages: [{ role: "user", content }],
        maxOutputTokens,
        signal,
      });
      const usage = readUsage(reply.usage) ?? readUsage(reply.message.usage);
      return { text: textOf(reply.message), usage: usage === null ? null : { calls: 1, ...tokensOf(usage) } };
    },
  };
}

/**
 * A writer over a summarizer, whose prose becomes the summary; what it finds of topics and decisions is in it.
 *
 * @throws {ThroughlineError} INPUT_INVALID for a summarizer without `summarize`, or a name that is no text
 */
export function summarizerCheckpointWriter(summarizer: Summarizer, name: string): CheckpointWriter {
  assertArgument("summarizerCheckpointWriter", "summarizer", summarizer, portKinds.summarizer);
  assertArgument("summarizerCheckpointWriter", "name", name, optionKinds.filledText);
  return {
    name,
    async write(request) {
      const { summary: text, usage } = await summarizer.summarize(request);
      return { text, usage };
    },
  };
}

function tokensOf({ input, output, cacheRead, cacheWrite }: CallUsage): Readonly<Record<string, number>> {
  return { input, output, cacheRead, cacheWrite };
}

function textOf({ content, stopReason }: AssistantMessage): string {
  // A reply that called a tool or broke off says nothing that could be relied on.
  if (stopReason === "toolUse" || stopReason === "error" || stopReason === "aborted") return "";
  if (typeof content === "string") return content;
  return content
    .map((block) => (block.type === "text" ? String((block as { text?: unknown }).text ?? "") : ""))
    .join("");
}
