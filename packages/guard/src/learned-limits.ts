import { isFields } from "@throughline/core/internal";
import type { ModelName } from "@throughline/tokens/internal";
import type { OverflowClassification } from "./overflow.ts";

/** What errors have told of one model at one provider. */
export interface ModelLimits {
  /** The context window. */
  readonly windowTokens?: number;
  /** The most tokens that the model writes. */
  readonly maxOutputTokens?: number;
  /** The rate limit that a single request ran into. */
  readonly ceilingTokens?: number;
  /** The most bytes of a request. */
  readonly requestBytes?: number;
  /** The most characters of one part of a request. */
  readonly itemCharacters?: number;
}

/** Limits by provider and model. Plain JSON, for the caller to keep. */
export interface LearnedLimits {
  readonly v: 1;
  /** The limits by provider and model. */
  readonly models: Readonly<Record<string, ModelLimits>>;
}

export const nothingLearned: LearnedLimits = { v: 1, models: {} };

const mostModels = 128;
const fields = ["windowTokens", "maxOutputTokens", "ceilingTokens", "requestBytes", "itemCharacters"] as const;

/** What is known of a model. */
export function limitsOf(limits: LearnedLimits, model: ModelName): ModelLimits {
  return Object.hasOwn(limits.models, keyOf(model)) ? (limits.models[keyOf(model)] ?? {}) : {};
}

/** Takes in what an error states; the same limits when it states nothing new. */
export function learnLimits(limits: LearnedLimits, model: ModelName, error: OverflowClassification): LearnedLimits {
  const stated = statedLimits(error);
  const known = limitsOf(limits, model);
  if (fields.every((field) => stated[field] === undefined || stated[field] === known[field])) return limits;
  const { [keyOf(model)]: _, ...others } = limits.models;
  const kept = Object.entries(others).slice(-(mostModels - 1));
  return { v: 1, models: { ...Object.fromEntries(kept), [keyOf(model)]: { ...known, ...stated } } };
}

function statedLimits({ kind, category, ...sizes }: OverflowClassification): ModelLimits {
  if (category === "output_cap") return stated("maxOutputTokens", sizes.maxOutputTokens);
  if (kind === "ceiling") return stated("ceilingTokens", sizes.limitTokens);
  if (kind === "bytes") return stated("requestBytes", sizes.limitBytes);
  if (kind === "item") return stated("itemCharacters", sizes.limitCharacters);
  return kind === null ? {} : stated("windowTokens", sizes.limitTokens);
}

/** A figure too small or too large to be meant is not learned: the text was read wrongly. */
function stated(field: keyof ModelLimits, value: number | null): ModelLimits {
  return value === null || value < 64 || value > 1e9 ? {} : { [field]: value };
}

/** Reads stored limits; null if they are invalid, so that the caller can report that it starts again. */
export function readLimits(value: unknown): LearnedLimits | null {
  if (!isFields(value) || value["v"] !== 1 || !isFields(value["models"])) return null;
  const isRead = Object.values(value["models"]).every(
    (model) =>
      isFields(model) && fields.every((field) => model[field] === undefined || Number.isSafeInteger(model[field])),
  );
  // Each field was checked above.
  return isRead ? (value as unknown as LearnedLimits) : null;
}

/** The same weights have another window at another provider. */
function keyOf({ provider, modelId }: ModelName): string {
  return `${provider ?? ""}/${modelId}`.toLowerCase();
}
