import { ThroughlineError } from "@throughline/core";
import { offlineModelId } from "./offline-model.ts";

/** A model and who offers it. */
export interface NamedModel {
  readonly provider: string;
  readonly modelId: string;
}

/**
 * Reads `provider/model`; what follows the first slash is the model, whatever it holds. `offline` alone will do.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function parseModelName(text: string): NamedModel {
  const name = text.trim();
  if (name === "offline") return { provider: name, modelId: offlineModelId };
  const slash = name.indexOf("/");
  const provider = name.slice(0, Math.max(0, slash));
  const modelId = name.slice(slash + 1);
  if (/^[a-z0-9][a-z0-9._-]*$/i.test(provider) && modelId.trim() === modelId && modelId !== "") {
    return { provider: provider.toLowerCase(), modelId };
  }
  throw new ThroughlineError("INPUT_INVALID", `${JSON.stringify(text)} does not name a model.`, {
    details: { model: text },
    remedy: 'Write provider/model, such as "anthropic/claude-sonnet-4-5" or "ollama/qwen3:8b", or "offline".',
  });
}
