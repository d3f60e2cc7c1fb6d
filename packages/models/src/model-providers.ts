/** A provider that is known by name. */
export interface ModelProvider {
  /** The name by which the provider is chosen, such as `anthropic`. */
  readonly name: string;
  /** The npm package that speaks its API; null where none is needed. */
  readonly package: string | null;
  /** The environment variable that holds its key; null where it wants none. */
  readonly keyVariable: string | null;
  /** The environment variable that holds its address. */
  readonly baseUrlVariable: string | null;
  /** Its own servers answer nobody without a key. */
  readonly needsKey: boolean;
}

/**
 * The providers that `createModel` knows by name. Any other name stands for a server that speaks Chat Completions at the
 * `baseUrl` given with it.
 */
export const modelProviders: readonly ModelProvider[] = [
  {
    name: "anthropic",
    package: "@anthropic-ai/sdk",
    keyVariable: "ANTHROPIC_API_KEY",
    baseUrlVariable: "ANTHROPIC_BASE_URL",
    needsKey: true,
  },
  {
    name: "openai",
    package: "openai",
    keyVariable: "OPENAI_API_KEY",
    baseUrlVariable: "OPENAI_BASE_URL",
    needsKey: true,
  },
  {
    name: "ollama",
    package: "ollama",
    keyVariable: "OLLAMA_API_KEY",
    baseUrlVariable: "OLLAMA_HOST",
    needsKey: false,
  },
  { name: "offline", package: null, keyVariable: null, baseUrlVariable: null, needsKey: false },
];

const ownHosts: Readonly<Record<string, string>> = { anthropic: "api.anthropic.com", openai: "api.openai.com" };

/** Whether an address is the provider's own; null stands for it. */
export function isOwnAddress(provider: string, address: string | null): boolean {
  const own = ownHosts[provider];
  return address === null || (own !== undefined && URL.parse(address)?.host === own);
}
