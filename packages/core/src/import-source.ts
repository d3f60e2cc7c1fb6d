import type { SessionEntry } from "./session-entry.ts";
import type { ImportSource } from "./session-store.ts";
import { refused } from "./refused.ts";
import { assertAgentId, assertNamespace } from "./session-id.ts";
import { sha256Hex } from "./sha256.ts";
import type { PurgedSource } from "./store-facets.ts";

/** Returns the source that an entry states, or null for a session that was not imported. */
function importSourceOf(entry: SessionEntry): ImportSource | null {
  const stated = entry["importedFrom"];
  if (typeof stated !== "object" || stated === null) return null;
  const { format, sessionId, sourceId = sessionId } = stated as Readonly<Record<string, unknown>>;
  return typeof format === "string" && typeof sourceId === "string" ? { format, sourceId } : null;
}

/**
 * Files of these formats have the lines of OpenClaw. A program or a user moves a session from one to another, and its
 * source stays the same.
 */
const linesOfOpenclaw: ReadonlySet<string> = new Set(["openclaw-sqlite", "pi", "claw0", "clawcode", "jsonl"]);

/**
 * Returns the 32 hex digits by which stores find the sessions of a source. A store keeps them after a purge, so they
 * do not reveal the source.
 */
export function importSourceDigest({ format, sourceId }: ImportSource): string {
  const name = linesOfOpenclaw.has(format) ? "openclaw" : format;
  return sha256Hex(JSON.stringify([name, sourceId.toLowerCase()])).slice(0, 32);
}

/** Returns the digest of the source that an entry states, or null for a session that was not imported. */
export function entrySourceDigest(entry: SessionEntry): string | null {
  const source = importSourceOf(entry);
  return source === null ? null : importSourceDigest(source);
}

/**
 * Refuses marks of purges that no store can have written.
 * @throws {ThroughlineError} NAMESPACE_INVALID, AGENT_ID_INVALID, INPUT_INVALID
 */
export function assertPurges(namespace: string, purges: readonly PurgedSource[]): void {
  assertNamespace(namespace);
  for (const { agentId, digest, purgedAtMs } of purges) {
    assertAgentId(agentId);
    if (/^[0-9a-f]{32}$/.test(digest) && Number.isSafeInteger(purgedAtMs) && purgedAtMs >= 0) continue;
    throw refused("INPUT_INVALID", "A mark of a purge has a digest of 32 hex digits and a time in milliseconds.", {
      digest,
      purgedAtMs,
    });
  }
}
