import type * as sdk from "@anthropic-ai/claude-agent-sdk";
import { ThroughlineError } from "@throughline/core";

export type ClaudeSdk = typeof sdk;

const packageName = "@anthropic-ai/claude-agent-sdk";

/** Loads the SDK on first use. @throws {ThroughlineError} MODEL_SDK_MISSING when it lacks the function */
export async function loadClaudeSdk(needed: keyof ClaudeSdk): Promise<ClaudeSdk> {
  let module: Partial<ClaudeSdk>;
  try {
    module = await import("@anthropic-ai/claude-agent-sdk");
  } catch (cause) {
    throw missing(cause);
  }
  if (typeof module[needed] !== "function") throw missing(null);
  return module as ClaudeSdk;
}

function missing(cause: unknown): ThroughlineError {
  return new ThroughlineError("MODEL_SDK_MISSING", `The package ${packageName} is not installed, or too old.`, {
    outcome: "not-applied",
    remedy: `npm install ${packageName}`,
    ...(cause === null ? {} : { cause }),
  });
}
