import { ThroughlineError } from "@throughline/core";

/** The packages the providers publish for their APIs; each is an optional peer. */
export type SdkName = "@anthropic-ai/sdk" | "openai" | "ollama";

/**
 * Imports a provider's package when it is first needed.
 * @throws {ThroughlineError} MODEL_SDK_MISSING when it is not installed; any other failure comes as it is
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

/** A package of its own that the SDK lacks is another defect, with another remedy. */
function isNotFound(error: unknown, name: SdkName): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { readonly code?: unknown };
  return (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") && error.message.includes(`'${name}'`);
}
