/** A provider whose models can be had by name. */
export interface ModelProvider {
  readonly name: string;
  /** The npm package that speaks its API; null when none is needed. */
  readonly package: string | null;
  /** The environment variable its key is usually kept in; null when it wants none. */
  readonly keyVariable: string | null;
  /** The environment variable its address is usually kept in. */
  readonly baseUrlVariable: string | null;
  readonly needsKey: boolean;
}

/**
 * The providers this package knows by name. The variables are data for whoever reads the environment: nothing in this
 * package does. Any other name is taken for a server that speaks Chat Completions at the `baseUrl` given with it.
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
