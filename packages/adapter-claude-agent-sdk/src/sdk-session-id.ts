import type { SessionEntry } from "@throughline/core";

/** Under what names programs have kept Claude's session id in `cliSessionIds`. */
const claudeNames = ["claude-agent-sdk", "claude-cli", "claude-code", "claude", "anthropic"] as const;

/** The id of the SDK's own session, from its field or from those that held it before there was one. Null: none. */
export function readSdkSessionId(entry: SessionEntry): string | null {
  const map = entry["cliSessionIds"];
  const byProvider = typeof map === "object" && map !== null ? (map as Readonly<Record<string, unknown>>) : {};
  const known = [entry["sdkSessionId"], entry["claudeCliSessionId"], ...claudeNames.map((name) => byProvider[name])];
  return known.find((id): id is string => typeof id === "string" && id.trim() !== "") ?? null;
}

/** The entry's fields with this id in it and nowhere else; null clears it. */
export function withSdkSessionId(entry: SessionEntry, id: string | null): Readonly<Record<string, unknown>> {
  const map = entry["cliSessionIds"];
  const others =
    typeof map === "object" && map !== null
      ? Object.fromEntries(Object.entries(map).filter(([name]) => !claudeNames.includes(name as "claude")))
      : null;
  // What an older program left under another name would be taken for the session again once this field is gone.
  return {
    sdkSessionId: id ?? undefined,
    ...(entry["claudeCliSessionId"] === undefined ? {} : { claudeCliSessionId: undefined }),
    ...(others === null ? {} : { cliSessionIds: Object.keys(others).length === 0 ? undefined : others }),
  };
}
