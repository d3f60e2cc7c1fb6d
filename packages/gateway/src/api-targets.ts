import type { HistoryTarget } from "@throughline/history";
import { historyTargets, type TargetName } from "@throughline/history/internal";
import type { WireApi } from "./wire/index.ts";

export const apiTargets: Readonly<Record<WireApi, readonly [provider: string, target: TargetName]>> = {
  "anthropic-messages": ["anthropic", "anthropic"],
  "openai-completions": ["openai", "openai"],
  "openai-responses": ["openai", "openai-responses"],
  ollama: ["ollama", "ollama"],
};

/** Records omit the path of a call when it equals the usual path of the API. */
export const usualPaths: Readonly<Record<WireApi, string>> = {
  "anthropic-messages": "/v1/messages",
  "openai-completions": "/v1/chat/completions",
  "openai-responses": "/v1/responses",
  ollama: "/api/chat",
};

export function historyTargetOf(api: WireApi): HistoryTarget {
  const [, name] = apiTargets[api];
  const target = historyTargets.get(name);
  if (target === undefined) throw new RangeError(`There is no target ${name}.`);
  return target;
}
