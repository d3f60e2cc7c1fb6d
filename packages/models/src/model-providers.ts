/** Describes a provider that `createModel` accepts by name. */
export interface ModelProvider {
  /** States the name that selects the provider, such as `anthropic`. */
  readonly name: string;
  /** Names the npm package that speaks the provider's API; null if none is needed. */
  readonly package: string | null;
  /** Names the environment variable that holds the key; null if the provider needs none. */
  readonly keyVariable: string | null;
  /** Names the environment variable that holds the address; null if the provider has none. */
  readonly baseUrlVariable: string | null;
  /** States whether the provider's own servers reject requests without a key. */
  readonly needsKey: boolean;
}

/**
 * Lists the providers that `createModel` accepts by name. Any other name means a server that speaks Chat Completions at
 * the given `baseUrl`.
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

/** Checks whether an address is the provider's own. Null means the default address, which is. */
export function isOwnAddress(provider: string, address: string | null): boolean {
  const own = ownHosts[provider];
  return address === null || (own !== undefined && URL.parse(address)?.host === own);
}
