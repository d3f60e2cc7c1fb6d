import { isFields } from "@throughline/core/internal";

/** Names of models that read text only. Later models of the same families read images. */
const textOnly: Readonly<Record<"anthropic" | "openai", RegExp>> = {
  anthropic: /^claude-(?:2|instant)/,
  openai: /^(?:gpt-3\.5|gpt-4-(?:0|1|32k)|gpt-4$|o1-mini|o1-preview|o3-mini)/,
};
const named: Readonly<Record<"anthropic" | "openai", RegExp>> = {
  anthropic: /^claude-/,
  openai: /^(?:gpt-\d|o\d)/,
};

/** Returns whether a model of this family reads images, by its name; null for a name of another family. */
export function takesImagesByName(family: "anthropic" | "openai", modelId: string): boolean | null {
  return named[family].test(modelId) ? !textOnly[family].test(modelId) : null;
}

/** Reads it from what an Ollama server states of a model; null where the server states no capabilities. */
export function takesImagesByCapabilities(show: unknown): boolean | null {
  const capabilities = isFields(show) ? show["capabilities"] : null;
  return Array.isArray(capabilities) ? capabilities.includes("vision") : null;
}
