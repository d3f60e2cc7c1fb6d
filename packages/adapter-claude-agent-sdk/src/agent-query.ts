import { ThroughlineError } from "@throughline/core";

/** The part of the signature of the SDK's `query` that is used here. */
export type AgentQuery = (request: {
  readonly prompt: string;
  readonly options: Readonly<Record<string, unknown>>;
}) => AsyncIterable<unknown>;

const packageName = "@anthropic-ai/claude-agent-sdk";

/** The SDK's own `query`, loaded when it is first needed. @throws {ThroughlineError} MODEL_SDK_MISSING */
export async function loadAgentQuery(): Promise<AgentQuery> {
  let module: { readonly query?: unknown };
  try {
    module = await import("@anthropic-ai/claude-agent-sdk");
  } catch (cause) {
    throw missing(cause);
  }
  if (typeof module.query !== "function") throw missing(null);
  return module.query as AgentQuery;
}

function missing(cause: unknown): ThroughlineError {
  return new ThroughlineError("MODEL_SDK_MISSING", `The package ${packageName} is not installed.`, {
    outcome: "not-applied",
    remedy: `npm install ${packageName}`,
    ...(cause === null ? {} : { cause }),
  });
}
