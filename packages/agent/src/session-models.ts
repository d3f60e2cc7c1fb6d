import { readWindow, ThroughlineError } from "@throughline/core";
import { shellWord } from "@throughline/core/internal";
import type { SessionState, SessionStore, StoredRecord } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { modelProviders } from "@throughline/models/internal";
import type { NamedModel } from "@throughline/models";

export interface SessionModels {
  /** Combines `providerOverride` and `modelOverride` of the entry; null without either. */
  readonly override: ModelOverride | null;
  /** Lists models by relevance: the one that the records last state, then the one in the entry. */
  readonly own: readonly NamedModel[];
}

export interface ModelOverride {
  /** Null if the fields do not determine it. */
  readonly provider: string | null;
  readonly modelId: string | null;
  /** Holds the commands that remove the override. */
  readonly unset: string;
}

/** The newest reply is almost always among these records, so the rest of the window need not be read. */
const newestRecords = 64;

/** Reads only as many records as it takes to find a model. */
export async function readSessionModels(store: SessionStore, state: SessionState): Promise<SessionModels> {
  const { modelProvider, model } = state.entry;
  const recorded = await recordedModel(store, state);
  const last =
    isText(modelProvider) && isText(model) ? { provider: modelProvider.toLowerCase(), modelId: model } : null;
  const own = [recorded, last].filter((named) => named !== null);
  return { override: overrideOf(state, own), own };
}

async function recordedModel(store: SessionStore, { ref, head }: SessionState): Promise<NamedModel | null> {
  const newest: StoredRecord[] = [];
  for await (const { records } of store.read(ref, { order: "descending", limit: newestRecords }))
    newest.push(...records);
  const isAll = newest.length < newestRecords;
  const found = namedIn(newest.toReversed(), head.headId);
  return found !== null || isAll ? found : namedIn((await readWindow(store, ref)).records, head.headId);
}

function namedIn(records: readonly StoredRecord[], headId: string | null): NamedModel | null {
  const { model } = buildContext(records, { headId });
  return model === null || model.modelId === "" ? null : { ...model, provider: model.provider.toLowerCase() };
}

/** A model without a provider belongs to the provider that the session used before. */
function overrideOf({ entry, ref }: SessionState, own: readonly NamedModel[]): ModelOverride | null {
  const { providerOverride, modelOverride } = entry;
  const isOfProvider = isText(providerOverride);
  if (!isOfProvider && !isText(modelOverride)) return null;
  const fields = [...(isOfProvider ? ["providerOverride"] : []), ...(isText(modelOverride) ? ["modelOverride"] : [])];
  const unset = fields.map((field) => `\`throughline entry ${shellWord(ref.key)} unset ${field}\``).join(" and ");
  if (isOfProvider) {
    const provider = providerOverride.toLowerCase();
    const modelId = isText(modelOverride)
      ? modelOverride
      : (own.find((named) => named.provider === provider)?.modelId ?? null);
    return { provider, modelId, unset };
  }
  const [, named = "", modelId = ""] = /^([^/]+)\/(.+)$/s.exec(modelOverride as string) ?? [];
  if (modelId !== "" && modelProviders.some(({ name }) => name === named.toLowerCase()))
    return { provider: named.toLowerCase(), modelId, unset };
  const known = own.find(({ provider }) => modelProviders.some(({ name }) => name === provider && name !== "offline"));
  return { provider: known?.provider ?? null, modelId: modelOverride as string, unset };
}

export function overrideProblem(
  { provider, modelId, unset }: ModelOverride,
  missingVariable: string | null,
): ThroughlineError {
  const named = `The entry names ${JSON.stringify([provider, modelId].filter((part) => part !== null).join("/"))} for this session`;
  const details = { provider, modelId };
  if (missingVariable !== null)
    return new ThroughlineError("MODEL_KEY_MISSING", `${named}, and ${missingVariable} is not set.`, {
      details,
      remedy: `Set ${missingVariable}, or remove the override: ${unset}.`,
    });
  const lacking =
    provider === null
      ? "which names no provider"
      : modelId === null
        ? "which names no model"
        : "and no provider of that name is known";
  return new ThroughlineError("INPUT_INVALID", `${named}, ${lacking}.`, {
    details,
    remedy: `Remove the override: ${unset}.`,
  });
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
