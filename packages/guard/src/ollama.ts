import { isFields } from "@throughline/core/internal";
import type { ContextEstimate } from "@throughline/tokens";

/**
 * Fields for every request to Ollama. Without them the server drops the oldest messages of a prompt that is too long,
 * and half of the rest, and answers without an error. Servers that do not know them ignore them.
 */
export const ollamaRequestFields: { readonly truncate: false; readonly shift: false } = {
  truncate: false,
  shift: false,
};

/** What Ollama's own API says of a model. */
interface OllamaWindow {
  /** Of the loaded model, from `/api/ps`: what counts. Null when it is not loaded. */
  readonly loadedTokens: number | null;
  /** `num_ctx` of the model file and the length it was trained for, from `/api/show`. */
  readonly configuredTokens: number | null;
  /** The length that the model was trained for; null when the server does not state it. */
  readonly trainedTokens: number | null;
}

/** Reads the answers of `/api/show` and `/api/ps`; either may be missing. */
export function readOllamaWindow(model: string, show: unknown, ps: unknown = null): OllamaWindow {
  const info = isFields(show) && isFields(show["model_info"]) ? show["model_info"] : {};
  const trained = Object.entries(info).find(([key]) => key.endsWith(".context_length"))?.[1];
  const parameters = isFields(show) ? String(show["parameters"] ?? "") : "";
  const configured = /^[ \t]*num_ctx[ \t]+(\d+)/m.exec(parameters)?.[1];
  const models = isFields(ps) && Array.isArray(ps["models"]) ? ps["models"].filter(isFields) : [];
  const loaded = models.find((one) =>
    [one["name"], one["model"]].some((name) => name === model || name === `${model}:latest`),
  );
  return {
    loadedTokens: tokensOf(loaded?.["context_length"]),
    configuredTokens: tokensOf(configured === undefined ? null : Number(configured)),
    trainedTokens: tokensOf(trained),
  };
}

/** The window a request gets: what it asks for, else what is loaded, else what the model file says, never more than trained. */
export function ollamaWindowTokens(window: OllamaWindow, requestedTokens: number | null = null): number | null {
  const given = requestedTokens ?? window.loadedTokens ?? window.configuredTokens;
  return given === null ? null : Math.min(given, window.trainedTokens ?? given);
}

/** How sure it is that a server left out a part of the prompt without saying so. */
export type SilentTruncation = "none" | "suspected" | "certain";

/**
 * Compares the prompt a server says it evaluated with the estimate. Only a window that the prompt cannot have fitted
 * makes it certain: servers that leave the cached part out of their count state low figures for whole prompts.
 */
export function silentTruncation(
  promptTokens: number,
  estimate: Pick<ContextEstimate, "tokens" | "lowTokens">,
  windowTokens: number | null,
): SilentTruncation {
  if (windowTokens !== null && estimate.lowTokens > windowTokens && promptTokens <= windowTokens) return "certain";
  return promptTokens < estimate.tokens * 0.7 && promptTokens < estimate.lowTokens ? "suspected" : "none";
}

function tokensOf(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : null;
}
