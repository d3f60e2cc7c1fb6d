import type { SettingValue } from "@throughline/core/internal";

/** The key under which OpenClaw has its search of memory. */
export const foreignMemorySearch = "agents.defaults.memorySearch";

/** Holds the embedder that another program's setting names, or the reason why it names none. */
type ForeignEmbedder = { readonly embedder: SettingValue } | { readonly reason: string };

/**
 * Reads OpenClaw's `agents.defaults.memorySearch` as `memory.search.embedder`. Only a provider that it names is taken: OpenClaw
 * itself also looks for keys and takes the first provider that has one.
 */
export function foreignEmbedder(value: SettingValue): ForeignEmbedder {
  const { enabled, provider, model, remote } = fieldsOf(value);
  const { baseUrl, apiKey } = fieldsOf(remote ?? null);
  if (enabled === false) return { reason: "it is off there" };
  if (provider !== "openai" && provider !== "ollama")
    return {
      reason:
        typeof provider === "string" && provider !== "auto"
          ? `memory.search.embedder has no provider ${JSON.stringify(provider.slice(0, 100))}`
          : "it names no provider, and memory.search.embedder takes none by itself",
    };
  const url = typeof baseUrl === "string" ? { url: baseUrl } : {};
  if (provider === "ollama")
    return typeof model === "string"
      ? { embedder: { provider, model, ...url } }
      : { reason: "it names no model of Ollama" };
  const variable = variableOf(apiKey);
  if (variable === null)
    return { reason: "it holds a key itself; set memory.search.embedder, whose keyVariable names a variable" };
  return {
    embedder: {
      provider: "openai-compatible",
      model: typeof model === "string" ? model : "text-embedding-3-small",
      url: "https://api.openai.com/v1",
      ...url,
      keyVariable: variable,
    },
  };
}

/** Names the server that an embedder sends texts to, without a password in its address. */
export function receiverOf(embedder: SettingValue): string {
  const { provider, url, model } = fieldsOf(embedder);
  const address = typeof url === "string" ? URL.parse(url)?.host : undefined;
  const isLocal = url === undefined && provider === "ollama";
  return `${address ?? (isLocal ? "Ollama on this machine" : "its url")}, model ${JSON.stringify(model)}`;
}

/** A key may stand as `${NAME}`. Without one OpenClaw takes that of the provider's variable. */
function variableOf(apiKey: SettingValue | undefined): string | null {
  if (apiKey === undefined || apiKey === null) return "OPENAI_API_KEY";
  return typeof apiKey === "string" ? (/^\$\{([A-Z][A-Z0-9_]{0,99})\}$/.exec(apiKey)?.[1] ?? null) : null;
}

function fieldsOf(value: SettingValue): Readonly<Record<string, SettingValue>> {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as Readonly<Record<string, SettingValue>>) : {};
}
