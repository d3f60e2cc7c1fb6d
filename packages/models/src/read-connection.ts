import { ThroughlineError } from "@throughline/core";
import type { Environment } from "@throughline/core/internal";
import { systemEnvironment } from "./system-environment.ts";
import { assertHeaderValues } from "./header-values.ts";
import type { ConnectionOptions } from "./model-options.ts";
import { isOwnAddress, modelProviders, type ModelProvider } from "./model-providers.ts";

export interface Connection {
  /** Holds the API key. Null sends none. */
  readonly apiKey: string | null;
  /** Holds the address. Null selects the provider's own. */
  readonly baseUrl: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof globalThis.fetch | undefined;
}

/** A client of an SDK brings its own values for these options, so they conflict with `client`. */
const clientOptions = ["apiKey", "baseUrl", "headers", "fetch", "environment", "maxRetries"] as const;

/**
 * Reads the options of a connection, and fills gaps from the environment.
 *
 * @param name the provider whose environment variables apply
 * @throws {ThroughlineError} MODEL_KEY_MISSING, INPUT_INVALID for a key or header that cannot be sent
 */
export function readConnection(name: string, options: ConnectionOptions): Connection {
  const known = modelProviders.find((provider) => provider.name === name) as ModelProvider;
  const { environment = systemEnvironment, headers = {}, fetch } = options;
  const baseUrl = options.baseUrl === undefined ? variable(environment, known.baseUrlVariable) : options.baseUrl;
  // The key in the environment belongs to the provider. A different server that the program names must not receive it.
  const isOwn = isOwnAddress(name, options.baseUrl ?? null);
  const usualKey = isOwn ? variable(environment, known.keyVariable) : null;
  const apiKey = options.apiKey === undefined ? usualKey : options.apiKey;
  if (known.needsKey && apiKey === null && baseUrl === null) throw missingKey(known);
  assertHeaderValues(apiKey, headers);
  return { apiKey, baseUrl, headers, fetch };
}

/**
 * Rejects options that a given client already decides.
 * @throws {ThroughlineError} INPUT_INVALID for such an option beside `client`
 */
export function assertClientAlone(
  call: string,
  options: ConnectionOptions & { readonly maxRetries?: number | undefined },
): void {
  const other = clientOptions.find((option) => options[option] !== undefined);
  if (other === undefined) return;
  throw new ThroughlineError("INPUT_INVALID", `${call}(): \`${other}\` does not apply beside \`client\`.`, {
    details: { argument: other },
    remedy: `Set it on the client, or leave \`client\` out.`,
  });
}

/** An empty or blank variable counts as unset. */
function variable(environment: Environment, name: string | null): string | null {
  const value = name === null ? "" : (environment.get(name) ?? "");
  return value.trim() === "" ? null : value;
}

function missingKey({ name, keyVariable }: ModelProvider): ThroughlineError {
  const message = `No API key for ${name}: neither \`apiKey\` nor ${keyVariable} is set.`;
  return new ThroughlineError("MODEL_KEY_MISSING", message, {
    details: { provider: name, variable: keyVariable, option: "apiKey" },
    remedy: `Set ${keyVariable}, or pass \`apiKey\`. The offline rules need no key.`,
  });
}
