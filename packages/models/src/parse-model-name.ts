import { ThroughlineError } from "@throughline/core";
import { assertArgument, optionKinds } from "@throughline/core/internal";
import { offlineModelId } from "./offline-model.ts";

/** Names a model and its provider. */
export interface NamedModel {
  /** States the provider's name, such as `anthropic`. */
  readonly provider: string;
  /** States the provider's id of the model. */
  readonly modelId: string;
}

/**
 * Parses `provider/model`. Everything after the first slash is the model's name and may contain more slashes. `offline`
 * needs no slash.
 *
 * @throws {ThroughlineError} INPUT_INVALID
 * @example
 * parseModelName("ollama/hf.co/org/model:Q4_K_M"); // { provider: "ollama", modelId: "hf.co/org/model:Q4_K_M" }
 */
export function parseModelName(text: string): NamedModel {
  assertArgument("parseModelName", "text", text, optionKinds.text);
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
    remedy: 'Write provider/model, such as "anthropic/claude-sonnet-5" or "ollama/qwen3:8b", or "offline".',
  });
}
