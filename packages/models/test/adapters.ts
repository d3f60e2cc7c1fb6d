import type { ChatDelta, ChatModel, ChatReply, ChatRequest } from "@throughline/core";
import type { TargetName } from "@throughline/history/internal";
import type { ProviderSimulator } from "@throughline/testing";
import { anthropic } from "../src/anthropic.ts";
import { ollama } from "../src/ollama.ts";
import { openai } from "../src/openai.ts";

/** An adapter, and what its provider is like. */
export interface AdapterCase {
  readonly name: string;
  readonly target: TargetName;
  /** What records call the wire format. */
  readonly api: string;
  readonly model: string;
  readonly create: (simulator: ProviderSimulator, options?: { readonly maxRetries?: number }) => ChatModel;
  /** Whether thinking is shown and comes back. */
  readonly thinks: boolean;
  /** Its SDK asks again by itself. */
  readonly retries: boolean;
  /** The error's fields that state the HTTP status. */
  readonly statusField: "status" | "status_code";
}

export const adapters: readonly AdapterCase[] = [
  {
    name: "Anthropic",
    target: "anthropic",
    api: "anthropic-messages",
    model: "claude-opus-5-5",
    create: ({ url }, options) => anthropic("claude-opus-5", { apiKey: key, baseUrl: url, ...options }).chat,
    thinks: true,
    retries: true,
    statusField: "status",
  },
  {
    name: "OpenAI Chat Completions",
    target: "openai",
    api: "openai-completions",
    model: "gpt-4o",
    create: ({ url }, options) =>
      openai("gpt-5", { api: "openai", apiKey: key, baseUrl: `${url}/v1`, ...options }).chat,
    thinks: false,
    retries: true,
    statusField: "status",
  },
  {
    name: "OpenAI Responses",
    target: "openai-responses",
    api: "openai-responses",
    model: "gpt-5",
    create: ({ url }, options) =>
      openai("gpt-5", { api: "openai-responses", apiKey: key, baseUrl: `${url}/v1`, ...options }).chat,
    thinks: true,
    retries: true,
    statusField: "status",
  },
  {
    name: "Ollama",
    target: "ollama",
    api: "ollama",
    model: "qwen3",
    create: ({ url }) => ollama("qwen3", { baseUrl: url, windowTokens: 100_000 }).chat,
    thinks: true,
    retries: false,
    statusField: "status_code",
  },
];

/** Looked for in errors, where it must not be. */
export const key = "sk-secret-0123456789";

/** A first question in the adapter's wire shape. */
export function question({ target, model }: AdapterCase, text: string): ChatRequest {
  const content = [{ type: "text", text }];
  const messages: Readonly<Record<string, readonly unknown[]>> = {
    anthropic: [{ role: "user", content }],
    "openai-responses": [{ type: "message", role: "user", content: [{ type: "input_text", text }] }],
  };
  return { modelId: model, system: "You help.", messages: messages[target] ?? [{ role: "user", content: text }] };
}

/** What a call that failed left behind. */
export interface Attempt {
  readonly deltas: readonly ChatDelta[];
  readonly partials: readonly unknown[];
  readonly error: unknown;
  readonly reply: ChatReply | null;
}

/** Asks, streamed, and keeps all that comes of it. `onDelta` may abort. */
export async function attempt(
  model: ChatModel,
  request: ChatRequest,
  onDelta: (delta: ChatDelta) => void = () => undefined,
): Promise<Attempt> {
  const deltas: ChatDelta[] = [];
  const partials: unknown[] = [];
  const whole: ChatRequest = {
    ...request,
    onDelta(delta) {
      deltas.push(delta);
      onDelta(delta);
    },
    onPartial: (partial) => void partials.push(partial),
  };
  try {
    return { deltas, partials, error: null, reply: await model.chat(whole) };
  } catch (error) {
    return { deltas, partials, error, reply: null };
  }
}
