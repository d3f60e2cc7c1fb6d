import { hasErrorCode } from "../throughline-error.ts";
import { parseSessionKey } from "../session-key.ts";
import { peerSessionKey, sessionKeySlug } from "../build-session-key.ts";

export function terminalSessionKey(agentId: string, label: string): string {
  return peerSessionKey({ agentId, channel: "cli", peerKind: "direct", peerId: sessionKeySlug(label) });
}

/** These channels have no third party: `cli` is the command line, `import` marks an imported single file. */
const ownChannels: ReadonlySet<string> = new Set(["cli", "import"]);

/**
 * Decides by the key whether a session may continue in a terminal. An agent's main session may, and so may a direct
 * session without a channel or with the command line's channel. A session with a free-form key may too. Channels of a
 * messenger, groups, sub-agents and jobs may not.
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
