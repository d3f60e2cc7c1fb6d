import { isFields } from "@throughline/core/internal";
import type { ModelName } from "@throughline/tokens/internal";
import type { OverflowClassification } from "./overflow.ts";

/** Holds the limits that errors stated for one model at one provider. */
export interface ModelLimits {
  /** Holds the context window, in tokens. */
  readonly windowTokens?: number;
  /** Holds the most tokens that the model writes. */
  readonly maxOutputTokens?: number;
  /** Holds the rate limit, in tokens, that a single request exceeded. */
  readonly ceilingTokens?: number;
  /** Holds the most bytes of a request. */
  readonly requestBytes?: number;
  /** Holds the most characters of one part of a request. */
  readonly itemCharacters?: number;
}

/** Holds limits by provider and model. The value is plain JSON for the caller to store. */
export interface LearnedLimits {
  readonly v: 1;
  /** Maps `provider/modelId`, in lower case, to the limits of the model. */
  readonly models: Readonly<Record<string, ModelLimits>>;
}

export const nothingLearned: LearnedLimits = { v: 1, models: {} };

const mostModels = 128;
const fields = ["windowTokens", "maxOutputTokens", "ceilingTokens", "requestBytes", "itemCharacters"] as const;

/** Returns the learned limits of a model; an empty object when none are known. */
export function limitsOf(limits: LearnedLimits, model: ModelName): ModelLimits {
  return Object.hasOwn(limits.models, keyOf(model)) ? (limits.models[keyOf(model)] ?? {}) : {};
}

/** Adds the limits that an error states. Returns the same object when the error states no new limit. */
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

/** A figure outside of this range is a misread text, so it is not learned. */
function stated(field: keyof ModelLimits, value: number | null): ModelLimits {
  return value === null || value < 64 || value > 1e9 ? {} : { [field]: value };
}

/** Reads stored limits. Returns null when they are invalid, so that the caller can report the loss. */
export function readLimits(value: unknown): LearnedLimits | null {
  if (!isFields(value) || value["v"] !== 1 || !isFields(value["models"])) return null;
  const isRead = Object.values(value["models"]).every(
    (model) =>
      isFields(model) && fields.every((field) => model[field] === undefined || Number.isSafeInteger(model[field])),
  );
  // The checks above cover each field.
  return isRead ? (value as unknown as LearnedLimits) : null;
}

/** The provider is part of the key, because another provider may serve the same weights with another window. */
function keyOf({ provider, modelId }: ModelName): string {
  return `${provider ?? ""}/${modelId}`.toLowerCase();
}
