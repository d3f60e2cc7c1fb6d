import { ThroughlineError } from "@throughline/core";

/** How the SDK is asked: the signature of its `query`, as far as it is used here. */
export type AgentQuery = (request: {
  readonly prompt: string;
  readonly options: Readonly<Record<string, unknown>>;
}) => AsyncIterable<unknown>;

const packageName = "@anthropic-ai/claude-agent-sdk";

/** The SDK's own `query`, loaded when it is first needed. @throws {ThroughlineError} MODEL_SDK_MISSING */
export async function loadAgentQuery(): Promise<AgentQuery> {
  let module: { readonly query?: unknown };
  try {
    // @ts-expect-error An optional peer, which is not installed where this is built.
    module = (await import("@anthropic-ai/claude-agent-sdk")) as { readonly query?: unknown };
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
