import { checkBedrockConverse, checkGemini, checkMistral } from "@throughline/testing/internal";
import type { ProviderSimulator } from "@throughline/testing";
import type { TargetName } from "../src/provider-mappings.ts";

type Body = Readonly<Record<string, unknown>>;

/** What the simulator says to a request, null when it takes it. */
export type Verdict = string | null;

const tool = { type: "function", function: { name: "look", parameters: { type: "object" } } };

type Headers = Readonly<Record<string, string>>;

async function posted(
  simulator: ProviderSimulator,
  path: string,
  body: Body,
  headers: Headers = {},
): Promise<Response> {
  return fetch(`${simulator.url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: "Bearer test",
      "x-api-key": "test",
      "anthropic-version": "2023-06-01",
      ...headers,
    },
    body: JSON.stringify(body),
  });
}

/** The answer of the simulator; throws when it refuses. */
export async function accepted(
  simulator: ProviderSimulator,
  path: string,
  body: Body,
  headers: Headers = {},
): Promise<Body> {
  const response = await posted(simulator, path, body, headers);
  const answer = (await response.json()) as Body;
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return answer;
}

async function refusal(simulator: ProviderSimulator, path: string, body: Body): Promise<Verdict> {
  const response = await posted(simulator, path, body);
  const answer = (await response.json()) as { readonly error?: string | { readonly message: string } };
  if (response.ok || answer.error === undefined) return null;
  return typeof answer.error === "string" ? answer.error : answer.error.message;
}

/** The body of a request to Anthropic; thinking is asked for of the model named so. */
export function anthropicBody(messages: readonly unknown[], model: string): Body {
  const isThinking = model === "thinking";
  return {
    model: isThinking ? "claude-opus-4-5" : model,
    max_tokens: 2000,
    ...(isThinking ? { thinking: { type: "enabled", budget_tokens: 1024 } } : {}),
    messages,
  };
}

/** A third reading of the rules, by code that shares nothing with the validators or the renderings. */
export async function thirdReading(
  simulator: ProviderSimulator,
  target: TargetName,
  messages: readonly unknown[],
  model: string | undefined,
): Promise<Verdict> {
  switch (target) {
    case "anthropic":
      return refusal(simulator, "/v1/messages", anthropicBody(messages, model ?? "claude-opus-4-5"));
    case "openai":
      return refusal(simulator, "/v1/chat/completions", { model: model ?? "gpt-4o", messages, tools: [tool] });
    case "openai-responses":
      return refusal(simulator, "/v1/responses", { model: model ?? "gpt-5", input: messages, store: false });
    case "ollama":
      return refusal(simulator, "/api/chat", { model: model ?? "llama3.1", stream: false, messages });
    case "gemini":
      return checkGemini({ contents: messages }, model ?? "gemini-2.5-pro")?.message ?? null;
    case "mistral":
      return checkMistral({ messages })?.message ?? null;
    case "bedrock":
      return checkBedrockConverse({ messages, toolConfig: { tools: [{}] } })?.message ?? null;
  }
}
