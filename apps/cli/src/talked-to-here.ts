import { hasErrorCode } from "@throughline/core";
import { parseSessionKey } from "@throughline/core/keys";

/** Channels that are no third party's: the command line's own, and what was imported from a lone file. */
const ownChannels: ReadonlySet<string> = new Set(["cli", "import"]);

/**
 * Whether a session is one that its owner talks to from a terminal, by its key: an agent's main one, a direct one without
 * a channel or with the command line's own, or one whose key says nothing of the kind. Not what belongs to a channel of a
 * messenger, to a group, to an agent's own agents or to a job.
 */
export function isTalkedToHere(key: string): boolean {
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
