import { loadClaudeSdk } from "./claude-sdk.ts";

/** The part of the signature of the SDK's `query` that is used here. */
export type AgentQuery = (request: {
  readonly prompt: string;
  readonly options: Readonly<Record<string, unknown>>;
}) => AsyncIterable<unknown>;

/** The SDK's own `query`, loaded when it is first needed. @throws {ThroughlineError} MODEL_SDK_MISSING */
export async function loadAgentQuery(): Promise<AgentQuery> {
  // Its options are a type of the SDK; here they are passed on as they were given.
  return (await loadClaudeSdk("query")).query as unknown as AgentQuery;
}
