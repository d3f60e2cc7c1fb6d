import { ThroughlineError } from "@throughline/core";

/** The providers publish these packages for their APIs. Each is an optional peer dependency. */
export type SdkName = "@anthropic-ai/sdk" | "openai" | "ollama";

/**
 * Imports a provider's package when it is first needed.
 * @throws {ThroughlineError} MODEL_SDK_MISSING when it is not installed; any other failure passes unchanged
 */
export async function loadSdk<Sdk>(name: SdkName, load: () => Promise<Sdk>): Promise<Sdk> {
  try {
    return await load();
  } catch (error) {
    if (!isNotFound(error, name)) throw error;
    throw new ThroughlineError("MODEL_SDK_MISSING", `The package ${name} is not installed.`, {
      details: { package: name },
      remedy: `Install it: npm install ${name}`,
      cause: error,
    });
  }
}

/** The error must name this package, because a missing dependency of the SDK needs another remedy. */
function isNotFound(error: unknown, name: SdkName): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { readonly code?: unknown };
  return (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") && error.message.includes(`'${name}'`);
}
