import {
  type AssistantMessage,
  type ChatModel,
  type ChatRequest,
  ThroughlineError,
  type Usage,
} from "@throughline/core";
import { historyTargets } from "@throughline/history/internal";

/** What a scripted model answers. */
export interface ScriptedReply {
  readonly text?: string;
  /** Streamed so many characters at a time. @default all at once */
  readonly pieceLength?: number;
  readonly calls?: readonly {
    readonly id: string;
    readonly name: string;
    readonly arguments: Record<string, unknown>;
  }[];
  readonly usage?: Usage;
  readonly stopReason?: string;
  readonly responseId?: string;
  /** Rejects with this, after `text` has arrived when there is one. */
  readonly error?: unknown;
  /** Stops after the text until it is aborted. */
  readonly hangs?: boolean;
  /** Resolves before the answer. */
  readonly after?: Promise<unknown>;
  /** Resolves before the second piece. */
  readonly between?: Promise<unknown>;
}

export interface ScriptedModel extends ChatModel {
  /** As they came, in copies. */
  readonly requests: {
    readonly system: string | null;
    readonly messages: readonly unknown[];
    readonly tools: unknown;
  }[];
  push(...replies: readonly (ScriptedReply | string | ((request: ChatRequest) => ScriptedReply))[]): void;
}

/** A model that answers by script, and refuses what Anthropic would refuse. */
export function createScriptedModel(
  ...script: (ScriptedReply | string | ((request: ChatRequest) => ScriptedReply))[]
): ScriptedModel {
  const requests: ScriptedModel["requests"] = [];
  return {
    provider: "anthropic",
    api: "anthropic",
    requests,
    push: (...replies) => void script.push(...replies),
    async chat(request) {
      const { system, messages, tools } = structuredClone({
        ...request,
        signal: null,
        onDelta: null,
        onPartial: null,
        onWait: null,
      });
      requests.push({ system, messages, tools });
      const violations = historyTargets.get("anthropic")?.validate(messages, request.modelId) ?? [];
      if (violations.length > 0) throw new Error(`the script refuses: ${JSON.stringify(violations)}`);
      const next = script.shift() ?? "ok";
      const reply = typeof next === "string" ? { text: next } : typeof next === "function" ? next(request) : next;
      await reply.after;
      const message = messageOf(reply, request.modelId);
      for (const [at, text] of piecesOf(reply).entries()) {
        if (at === 1) await reply.between;
        request.onDelta?.({ type: "text", text });
      }
      if (reply.hangs === true) {
        await aborted(request.signal);
        if (reply.text !== undefined || reply.calls !== undefined)
          request.onPartial?.({ ...message, stopReason: "aborted" });
        throw new ThroughlineError("ABORTED", "The call was aborted.");
      }
      if (reply.error !== undefined) {
        if (reply.text !== undefined) request.onPartial?.({ ...message, stopReason: "error" });
        throw reply.error;
      }
      return { message, stopReason: message.stopReason ?? "stop", usage: { ...message.usage } };
    },
  };
}

function piecesOf({ text, pieceLength = text?.length ?? 0 }: ScriptedReply): readonly string[] {
  return text?.match(new RegExp(`[^]{1,${Math.max(pieceLength, 1)}}`, "g")) ?? [];
}

function messageOf(reply: ScriptedReply, model: string): AssistantMessage {
  const { text, calls = [], stopReason = calls.length > 0 ? "toolUse" : "stop" } = reply;
  const usage = reply.usage ?? { input: 10, output: 5, cacheRead: 0, cacheWrite: 0 };
  return {
    role: "assistant",
    content: [
      ...(text === undefined ? [] : [{ type: "text" as const, text }]),
      ...calls.map((call) => ({ type: "toolCall" as const, ...call })),
    ],
    api: "anthropic-messages",
    provider: "anthropic",
    model,
    usage,
    stopReason,
    ...(reply.responseId === undefined ? {} : { responseId: reply.responseId }),
  };
}

function aborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) resolve();
    signal?.addEventListener("abort", () => resolve(), { once: true });
  });
}
