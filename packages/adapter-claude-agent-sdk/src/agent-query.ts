import { loadClaudeSdk } from "./claude-sdk.ts";

/** Describes the part of the SDK's `query` signature that this package uses. */
export type AgentQuery = (request: {
  readonly prompt: string;
  readonly options: Readonly<Record<string, unknown>>;
}) => AsyncIterable<unknown>;

/** Loads the SDK's `query` on first use. @throws {ThroughlineError} MODEL_SDK_MISSING */
export async function loadAgentQuery(): Promise<AgentQuery> {
  // The SDK types its options, while this package passes them on unchanged. Hence the cast.
  return (await loadClaudeSdk("query")).query as unknown as AgentQuery;
}
