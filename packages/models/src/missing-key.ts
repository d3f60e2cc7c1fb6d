import { ThroughlineError } from "@throughline/core";

/** The error for a provider that wants a key and got none. */
export function missingKey(provider: string, variable: string): ThroughlineError {
  return new ThroughlineError("MODEL_KEY_MISSING", `No key for the models of ${provider} (${variable}).`, {
    details: { provider, variable },
    remedy: `Set ${variable}, or give the key by configuration; the model "offline" needs none.`,
  });
}
