/** Names a model in the caller's spelling. */
export interface ModelName {
  /** States the provider, such as `anthropic`, `openai`, `google` or `ollama`. Null means unknown. */
  readonly provider: string | null;
  /** States the provider's id of the model. */
  readonly modelId: string;
}

/**
 * Returns one spelling for a model regardless of who serves it. `anthropic/claude-opus-4.5`, `claude-opus-4-5-20251101`
 * and `us.anthropic.claude-opus-4-5-20251101-v1:0` all give `claude-opus-4-5`.
 */
export function canonicalModelId(modelId: string): string {
  const known = spellings.get(modelId);
  if (known !== undefined) return known;
  // A process usually names a few models repeatedly. The limit protects a process that names thousands.
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

/** Removes a bracketed suffix: `claude-opus-5[1m]` becomes `claude-opus-5`. */
function withoutSuffix(name: string): string {
  const start = name.endsWith("]") ? name.indexOf("[", name.lastIndexOf("]", name.length - 2) + 1) : -1;
  return start === -1 ? name : name.slice(0, start);
}

/**
 * Returns true when both names mean the same model. The provider does not matter, because the same weights count the
 * same tokens.
 */
export function isSameModel(one: ModelName, other: ModelName): boolean {
  return canonicalModelId(one.modelId) === canonicalModelId(other.modelId);
}
