/** A model as a caller names it. */
export interface ModelName {
  /** `anthropic`, `openai`, `google`, `ollama`, …; null when it is not known. */
  readonly provider: string | null;
  /** The provider's id of the model. */
  readonly modelId: string;
}

/**
 * One spelling for a model, whoever serves it: `anthropic/claude-opus-4.5`, `claude-opus-4-5-20251101` and
 * `us.anthropic.claude-opus-4-5-20251101-v1:0` all give `claude-opus-4-5`.
 */
export function canonicalModelId(modelId: string): string {
  const known = spellings.get(modelId);
  if (known !== undefined) return known;
  // A process speaks of a few models again and again; whoever names thousands starts over now and then.
  if (spellings.size >= mostSpellings) spellings.clear();
  const canonical = spelledAlike(modelId);
  spellings.set(modelId, canonical);
  return canonical;
}

const mostSpellings = 256;
const spellings = new Map<string, string>();

function spelledAlike(modelId: string): string {
  const name = modelId.toLowerCase().slice(modelId.toLowerCase().lastIndexOf("/") + 1);
  return withoutSuffix(name.replace(/^(?:[a-z]{1,20}\.)?anthropic\./, ""))
    .replace(/-v\d{1,4}:\d{1,4}$/, "")
    .replace(/@\d{8}$/, "")
    .replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$/, "")
    .replaceAll(".", "-");
}

/** `claude-opus-5[1m]` without what stands in brackets behind it. */
function withoutSuffix(name: string): string {
  const start = name.endsWith("]") ? name.indexOf("[", name.lastIndexOf("]", name.length - 2) + 1) : -1;
  return start === -1 ? name : name.slice(0, start);
}

/** True when both names mean the same model. The provider does not matter: the same weights count the same tokens. */
export function isSameModel(one: ModelName, other: ModelName): boolean {
  return canonicalModelId(one.modelId) === canonicalModelId(other.modelId);
}
