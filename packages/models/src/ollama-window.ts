import { isFields } from "@throughline/core/internal";
import { fieldsOf, textOr } from "./wire-fields.ts";

/** Holds what a server reports about a model's window, in tokens; null for a value that it omits. */
export interface OllamaWindowFacts {
  readonly loadedTokens: number | null;
  /** States `num_ctx` of the model file. */
  readonly configuredTokens: number | null;
  /** States the context length that the model was trained for. */
  readonly trainedTokens: number | null;
}

export function ollamaWindowFacts(model: string, show: unknown, ps: unknown): OllamaWindowFacts {
  const parameters = isFields(show) ? textOr(show["parameters"], "") : "";
  const info = isFields(show) && isFields(show["model_info"]) ? Object.entries(show["model_info"]) : [];
  const loaded = fieldsOf(isFields(ps) ? ps["models"] : null).find((one) =>
    [one["name"], one["model"]].some((name) => name === model || name === `${model}:latest`),
  );
  return {
    loadedTokens: tokens(loaded?.["context_length"]),
    configuredTokens: tokens(Number(/^[ \t]*num_ctx[ \t]+(\d+)/m.exec(parameters)?.[1])),
    trainedTokens: tokens(info.find(([key]) => key.endsWith(".context_length"))?.[1]),
  };
}

/**
 * Returns the window of a request: the requested size, else the loaded one, else the configured one. It never exceeds
 * the trained length.
 */
export function ollamaWindow(
  { loadedTokens, configuredTokens, trainedTokens }: OllamaWindowFacts,
  askedTokens: number | null,
): number | null {
  const given = askedTokens ?? loadedTokens ?? configuredTokens;
  return given === null ? null : Math.min(given, trainedTokens ?? given);
}

function tokens(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : null;
}
