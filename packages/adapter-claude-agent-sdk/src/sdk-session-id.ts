import type { SessionEntry } from "@throughline/core";

/** Programs have stored Claude's session id in `cliSessionIds` under these names. */
const claudeNames = ["claude-agent-sdk", "claude-cli", "claude-code", "claude", "anthropic"] as const;

/** Reads the id of the SDK's own session, from its field or from older fields; null when no field holds one. */
export function readSdkSessionId(entry: SessionEntry): string | null {
  const map = entry["cliSessionIds"];
  const byProvider = typeof map === "object" && map !== null ? (map as Readonly<Record<string, unknown>>) : {};
  const known = [entry["sdkSessionId"], entry["claudeCliSessionId"], ...claudeNames.map((name) => byProvider[name])];
  return known.find((id): id is string => typeof id === "string" && id.trim() !== "") ?? null;
}

/** Builds the entry fields that store this id in its field alone; null clears it. */
export function withSdkSessionId(entry: SessionEntry, id: string | null): Readonly<Record<string, unknown>> {
  const map = entry["cliSessionIds"];
  const others =
    typeof map === "object" && map !== null
      ? Object.fromEntries(Object.entries(map).filter(([name]) => !claudeNames.includes(name as "claude")))
      : null;
  // An older field must not survive: it would be read as the session's id once this field is gone.
  return {
    sdkSessionId: id ?? undefined,
    ...(entry["claudeCliSessionId"] === undefined ? {} : { claudeCliSessionId: undefined }),
    ...(others === null ? {} : { cliSessionIds: Object.keys(others).length === 0 ? undefined : others }),
  };
}
