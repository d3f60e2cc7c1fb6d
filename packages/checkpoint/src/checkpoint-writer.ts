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

/** Holds the input of a checkpoint writer. */
export interface CheckpointRequest {
  /** Holds the conversation since the previous summary, as plain text. */
  readonly text: string;
  /** Holds the summary to continue. Null for the first checkpoint. */
  readonly previousSummary: string | null;
  /** Limits the reply, in tokens. */
  readonly maxOutputTokens: number;
  /** Is aborted at the deadline and when the checkpointer closes. A later reply is dropped. */
  readonly signal: AbortSignal;
}

/** Holds the reply of a writer. */
export interface CheckpointReply {
  /** Holds the checkpoint as JSON or as prose; both are parsed leniently. */
  readonly text: string;
  /** Counts the tokens of the call by kind. Null when the writer does not know them. */
  readonly usage: Readonly<Record<string, number>> | null;
}

/** Writes checkpoints. A writer without usage numbers may return the text alone. */
export interface CheckpointWriter {
  /** Names the writer in events and as `model` in the record, such as `anthropic/claude-haiku-4-5`. */
  readonly name: string;
  /** Writes a checkpoint. A rejection or an empty reply passes the request to the next writer. */
  write(request: CheckpointRequest): Promise<CheckpointReply | string>;
}

/**
 * Creates a writer that asks a model for the parts of a checkpoint as JSON. The model must take `{role, content}`
 * messages, which excludes the models of Google and Bedrock.
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
 * Creates a writer from a summarizer. Its prose becomes the summary; topics and decisions stay part of that prose.
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
  // A reply that called a tool or ended early is incomplete, so it is not used.
  if (stopReason === "toolUse" || stopReason === "error" || stopReason === "aborted") return "";
  if (typeof content === "string") return content;
  return content
    .map((block) => (block.type === "text" ? String((block as { text?: unknown }).text ?? "") : ""))
    .join("");
}
