import { type Embedder, ThroughlineError } from "@throughline/core";
import { localEmbedder } from "./local.ts";
import { ollamaEmbedder } from "./ollama.ts";
import { openaiCompatible } from "./openai-compatible.ts";

/** Lists the values of `provider` in a configuration. */
export const embedderKinds: readonly string[] = ["openai-compatible", "ollama", "local"];

/** Names an embedder as a configuration does. */
export interface EmbedderChoice {
  readonly provider: string;
  /** Names the model; for `local`, the folder of the model. */
  readonly model: string;
  readonly url?: string | undefined;
  readonly dimensions?: number | undefined;
  /** Names the environment variable that holds the key. Without a name no key is sent. */
  readonly keyVariable?: string | undefined;
}

/**
 * Creates the embedder that a configuration names. No key is used that the configuration does not name, because the texts of sessions
 * would go to its provider.
 * @throws {ThroughlineError} CONFIG_INVALID, MODEL_KEY_MISSING when the named variable is not set
 */
export function createEmbedder(
  { provider, model, url, dimensions, keyVariable }: EmbedderChoice,
  environment: Readonly<Record<string, string | undefined>>,
): Embedder {
  switch (provider) {
    case "ollama":
      return ollamaEmbedder({ model, baseUrl: url, dimensions });
    case "local":
      return localEmbedder({ modelPath: model, dimensions });
    case "openai-compatible":
      if (url === undefined)
        throw new ThroughlineError("CONFIG_INVALID", "memory.search.embedder names no `url` for openai-compatible.", {
          remedy: "Set `url`, such as https://api.openai.com/v1 or http://127.0.0.1:1234/v1.",
        });
      return openaiCompatible({ baseUrl: url, model, dimensions, apiKey: keyOf(keyVariable, environment) });
    default:
      throw new ThroughlineError(
        "CONFIG_INVALID",
        `memory.search.embedder has no provider ${JSON.stringify(provider)}.`,
        {
          remedy: `Use one of ${embedderKinds.join(", ")}.`,
        },
      );
  }
}

function keyOf(
  variable: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (variable === undefined) return undefined;
  const key = environment[variable]?.trim() ?? "";
  if (key !== "") return key;
  throw new ThroughlineError(
    "MODEL_KEY_MISSING",
    `The variable ${variable} that memory.search.embedder names is not set.`,
    {
      details: { variable },
      remedy: `Set ${variable}, or remove keyVariable where the server needs no key.`,
    },
  );
}
