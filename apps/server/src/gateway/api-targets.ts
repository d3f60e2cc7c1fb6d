import { type HistoryTarget } from "@throughline/history";
import { historyTargets, type TargetName } from "@throughline/history/internal";
import type { WireApi } from "@throughline/wire/internal";

/** Who offers the models of an API, and the name of its messages, as records have them. */
export const apiTargets: Readonly<Record<WireApi, readonly [provider: string, target: TargetName]>> = {
  "anthropic-messages": ["anthropic", "anthropic"],
  "openai-completions": ["openai", "openai"],
  "openai-responses": ["openai", "openai-responses"],
  ollama: ["ollama", "ollama"],
};

/** The path that calls of an API usually have. */
export const usualPaths: Readonly<Record<WireApi, string>> = {
  "anthropic-messages": "/v1/messages",
  "openai-completions": "/v1/chat/completions",
  "openai-responses": "/v1/responses",
  ollama: "/api/chat",
};

/** How histories are made for an API. */
export function historyTargetOf(api: WireApi): HistoryTarget {
  const [, name] = apiTargets[api];
  const target = historyTargets.get(name);
  if (target === undefined) throw new RangeError(`There is no target ${name}.`);
  return target;
}
