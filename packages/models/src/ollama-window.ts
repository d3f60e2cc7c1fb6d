import { isFields } from "@throughline/core/internal";
import { fieldsOf, textOr } from "./wire-fields.ts";

/** What a server says of a model's window, in tokens; null where it says nothing. */
export interface OllamaWindowFacts {
  /** Of the loaded model. */
  readonly loadedTokens: number | null;
  /** `num_ctx` of the model file. */
  readonly configuredTokens: number | null;
  /** What the model was trained for. */
  readonly trainedTokens: number | null;
}

/** Reads the answers of `/api/show` and `/api/ps`. */
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

/** The window a request gets: what it asks for, else what is loaded, else what is configured; never more than trained. */
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
