import { isFields } from "@throughline/core/internal";
import type { ContextEstimate } from "@throughline/tokens";

/**
 * Holds fields to add to every request to Ollama. Without them, the server drops the oldest messages and half of the
 * rest when a prompt is too long, and answers without an error. Servers that do not support the fields ignore them.
 */
export const ollamaRequestFields: { readonly truncate: false; readonly shift: false } = {
  truncate: false,
  shift: false,
};

/** Holds the window figures that Ollama's own API states for a model. */
interface OllamaWindow {
  /** Holds the window of the loaded model, from `/api/ps`. Null when the model is not loaded. */
  readonly loadedTokens: number | null;
  /** Holds `num_ctx` of the model file, from `/api/show`; null when the file sets none. */
  readonly configuredTokens: number | null;
  /** Holds the length that the model was trained for, from `/api/show`. Null when the server does not state it. */
  readonly trainedTokens: number | null;
}

/** Reads the window figures from the answers of `/api/show` and `/api/ps`. Either answer may be missing. */
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

/**
 * Returns the window of a request, in tokens: the requested one, else the loaded one, else that of the model file. The
 * window is never larger than the trained length. Null when no figure is known.
 */
export function ollamaWindowTokens(window: OllamaWindow, requestedTokens: number | null = null): number | null {
  const given = requestedTokens ?? window.loadedTokens ?? window.configuredTokens;
  return given === null ? null : Math.min(given, window.trainedTokens ?? given);
}

/** A server may leave out a part of the prompt without an error. The value states how certain that is. */
export type SilentTruncation = "none" | "suspected" | "certain";

/**
 * Compares the prompt size that a server reports with the estimate. Only a window that cannot hold the prompt is proof.
 * Servers that leave the cached part out of their count report low figures for whole prompts.
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
