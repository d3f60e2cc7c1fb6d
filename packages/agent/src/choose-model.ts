import { hasErrorCode, ThroughlineError } from "@throughline/core";
import { createModel } from "@throughline/models";
import { modelProviders, parseModelName } from "@throughline/models/internal";
import type { ModelProvider } from "@throughline/models/internal";
import type { SessionModel } from "@throughline/core/internal";
import { settingOf } from "@throughline/config/internal";
import type { AgentContext } from "./agent-context.ts";
import { overrideProblem } from "./session-models.ts";
import type { SessionModels } from "./session-models.ts";

export interface ChosenModel {
  /** Has the form `provider/model`. */
  readonly name: string;
  readonly model: SessionModel;
  /** True for the offline rules, which need no language model. */
  readonly isOffline: boolean;
  /** Names the setting or variable that selected the model, in a few words. */
  readonly reason: string;
  /** Explains why the model in the session's entry is not used; null if it is used or no override exists. */
  readonly problem: ThroughlineError | null;
}

export interface ModelChoice {
  readonly wanted: { readonly name: string; readonly source: string } | null;
  readonly session: SessionModels | null;
  readonly baseUrl: string | null;
  readonly apiKey: string | null;
  /**
   * Holds the configured window. With 0 the provider's window is used, even if it is unknown. Null assumes
   * `assumedWindowTokens` if the provider states none.
   */
  readonly windowTokens: number | null;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Reads the choice from the configuration. The models of the session are added when a session is opened. */
export function modelChoice({ config, environment }: AgentContext): Omit<ModelChoice, "session"> {
  const { settings } = config;
  const wanted = settings.find(({ key, value }) => key === "model" && value !== null);
  const window = settings.find(({ key }) => key === "windowTokens");
  return {
    wanted: wanted === undefined ? null : { name: String(wanted.value), source: wanted.sourceName ?? wanted.source },
    baseUrl: settingOf(settings, "modelBaseUrl") as string | null,
    apiKey: settingOf(settings, "modelApiKey") as string | null,
    windowTokens: window === undefined || window.source === "default" ? null : Number(window.value),
    environment,
  };
}

/** Most current models have this window. A smaller one is learned from the first refusal. */
const assumedWindowTokens = 200_000;

/** Selects a model when only an API key shows the provider. */
const usualModels: Readonly<Record<string, string>> = { anthropic: "claude-sonnet-5", openai: "gpt-5" };

/**
 * Chooses the model of a conversation: the requested one, then the override of the session's entry, then the session's
 * own. The last two count only if their provider can be reached. Otherwise the first provider with a key in the
 * environment is used, else the offline rules. A key in the environment alone never moves a conversation to another
 * provider.
 * @throws {ThroughlineError} INPUT_INVALID for an invalid name, MODEL_KEY_MISSING
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

/** Explains which model answers in place of the session's override; null if the override is used or none exists. */
export function problemNote({ problem, name }: ChosenModel): string | null {
  return problem === null ? null : `${problem.message} ${name} answers. ${problem.remedy}`;
}

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
  // The configured address and key belong to the configured model; another provider must not receive them.
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
