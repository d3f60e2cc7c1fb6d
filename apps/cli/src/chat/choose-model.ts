import { hasErrorCode, ThroughlineError } from "@throughline/core";
import { createModel } from "@throughline/models";
import { modelProviders, parseModelName } from "@throughline/models/internal";
import type { ModelProvider } from "@throughline/models/internal";
import type { SessionModel } from "@throughline/core/internal";
import { overrideProblem } from "./session-models.ts";
import type { SessionModels } from "./session-models.ts";

/** A model and why it is this one. */
export interface ChosenModel {
  /** `provider/model`. */
  readonly name: string;
  readonly model: SessionModel;
  /** Answers by rules: no language model. */
  readonly isOffline: boolean;
  /** Who said so, in a few words. */
  readonly reason: string;
  /** Why the model that the session's entry names does not answer; null where it does, or where none was looked for. */
  readonly problem: ThroughlineError | null;
}

export interface ModelChoice {
  /** The setting `model`; null when nothing sets it. */
  readonly wanted: { readonly name: string; readonly source: string } | null;
  /** What the session says; null before there is one. */
  readonly session: SessionModels | null;
  readonly baseUrl: string | null;
  readonly apiKey: string | null;
  /** 0: what the provider says, and unknown where it says nothing; null: then as much as `assumedWindowTokens`. */
  readonly windowTokens: number | null;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Of most models that are offered today. A smaller window is learned from the first refusal. */
const assumedWindowTokens = 200_000;

/** Asked when only a key says whose models are meant. */
const usualModels: Readonly<Record<string, string>> = { anthropic: "claude-sonnet-4-5", openai: "gpt-5" };

/**
 * Chooses the model of a conversation: the requested one, else the override of the session's entry, else the session's
 * own. The last two count only if their provider can be reached. Without any, it is the model of the first provider
 * whose key is in the environment, else the offline rules. A conversation does not go to another provider because a key
 * happens to lie there.
 * @throws {ThroughlineError} INPUT_INVALID for a name that is none, MODEL_KEY_MISSING
 */
export function chooseModel(choice: ModelChoice): ChosenModel {
  const { wanted, session, environment } = choice;
  if (wanted !== null) {
    const { provider, modelId } = parseModelName(wanted.name);
    return chosen(choice, provider, modelId, wanted.source);
  }
  const override = session?.override ?? null;
  if (override === null) return usual(choice);
  const { provider, modelId } = override;
  if (provider !== null && modelId !== null && canReach(provider, environment))
    return chosen(choice, provider, modelId, "the session's override");
  const known = modelProviders.find(({ name }) => name === provider);
  const missing = known === undefined || canReach(known.name, environment) ? null : known.keyVariable;
  return { ...usual(choice), problem: overrideProblem(override, missing) };
}

/** Where nobody says which one. */
function usual(choice: ModelChoice): ChosenModel {
  const { session, environment } = choice;
  const own = session?.own.find(({ provider }) => provider !== "offline" && canReach(provider, environment));
  if (own !== undefined) return chosen(choice, own.provider, own.modelId, "the session's own");
  const keyed = modelProviders.find(({ name, keyVariable }) => {
    return usualModels[name] !== undefined && textOf(environment, keyVariable) !== null;
  });
  if (keyed !== undefined)
    return chosen(choice, keyed.name, usualModels[keyed.name] ?? "", `${keyed.keyVariable} is set`);
  const variables = modelProviders.flatMap(({ needsKey, keyVariable }) => (needsKey ? [keyVariable] : []));
  return chosen(choice, "offline", parseModelName("offline").modelId, `${variables.join(" and ")} are not set`);
}

/** A model by its name, with the key and the address that belong to its provider. */
function chosen(choice: ModelChoice, provider: string, modelId: string, reason: string): ChosenModel {
  const isOffline = provider === "offline";
  const model = modelOf(choice, provider, modelId);
  return {
    name: isOffline ? "offline" : `${provider}/${modelId}`,
    model: { ...model, ...windowOf(choice, isOffline) },
    isOffline,
    reason,
    problem: null,
  };
}

type Window = Pick<SessionModel, "windowTokens" | "assumedWindowTokens">;

function windowOf({ windowTokens }: ModelChoice, isOffline: boolean): Window {
  if (windowTokens === null) return isOffline ? {} : { assumedWindowTokens };
  return windowTokens > 0 ? { windowTokens } : {};
}

function modelOf(
  { wanted, baseUrl, apiKey, environment }: ModelChoice,
  provider: string,
  modelId: string,
): SessionModel {
  const known = modelProviders.find(({ name }) => name === provider);
  // Address and key of the settings belong to the model of the settings; another one must not be given them.
  const isConfigured = wanted !== null && parseModelName(wanted.name).provider === provider;
  try {
    return createModel({
      provider,
      modelId,
      apiKey: (isConfigured ? apiKey : null) ?? textOf(environment, known?.keyVariable ?? null),
      baseUrl: (isConfigured ? baseUrl : null) ?? textOf(environment, known?.baseUrlVariable ?? null),
    });
  } catch (error) {
    if (!hasErrorCode(error, "MODEL_KEY_MISSING")) throw error;
    const { details } = error;
    const variable = String(details["variable"]);
    throw new ThroughlineError("MODEL_KEY_MISSING", `No API key for ${provider}: ${variable} is not set.`, {
      details,
      remedy: `Set ${variable}, or the setting modelApiKey; the model "offline" needs no key.`,
    });
  }
}

function canReach(provider: string, environment: ModelChoice["environment"]): boolean {
  const known: ModelProvider | undefined = modelProviders.find(({ name }) => name === provider);
  if (known === undefined) return false;
  return !known.needsKey || textOf(environment, known.keyVariable) !== null;
}

function textOf(environment: ModelChoice["environment"], variable: string | null): string | null {
  const text = variable === null ? undefined : environment[variable];
  return text === undefined || text === "" ? null : text;
}
