import { hasErrorCode } from "../throughline-error.ts";
import { parseSessionKey } from "../session-key.ts";
import { peerSessionKey, sessionKeySlug } from "../build-session-key.ts";

/** The key of a new session in a terminal: `agent:<agent>:cli:direct:<label-slug>`. */
export function terminalSessionKey(agentId: string, label: string): string {
  return peerSessionKey({ agentId, channel: "cli", peerKind: "direct", peerId: sessionKeySlug(label) });
}

/** Channels without a third party: the command line's, and that of an imported single file. */
const ownChannels: ReadonlySet<string> = new Set(["cli", "import"]);

/**
 * Whether a session may continue in a terminal, by its key. True for an agent's main session, a direct one without a
 * channel or with the command line's, and one with a free key. False for the channels of a messenger, for groups,
 * sub-agents and jobs.
 */
export function isTerminalKey(key: string): boolean {
  try {
    const parsed = parseSessionKey(key);
    if (parsed.form === "short") return ownChannels.has(parsed.channel);
    if (parsed.form !== "agent") return true;
    const { rest } = parsed;
    if (rest.kind === "peer")
      return rest.peerKind === "direct" && (rest.channel === null || ownChannels.has(rest.channel));
    return rest.kind === "main" || rest.kind === "other";
  } catch (error) {
    if (hasErrorCode(error, "KEY_INVALID", "AGENT_ID_INVALID")) return true;
    throw error;
  }
}
