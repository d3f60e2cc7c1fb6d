import type { SessionEntry, SessionState, SessionStore } from "@throughline/core";
import { forkToNewSession, systemRandom, updateEntry } from "@throughline/core/internal";

type ForkOptions = Parameters<typeof forkToNewSession>[2];

export interface ForkConversationOptions extends Pick<ForkOptions, "at" | "target" | "signal"> {
  /** Names the folder that the fork works in. */
  readonly folder: string;
  /** Sets the label of the fork; the empty text sets none. @default the label of the origin */
  readonly label?: string;
}

/**
 * Forks a session for a person. The fork keeps the label and title of its origin, so that the person recognizes the
 * conversation. What the caller states wins over what the fork inherits.
 */
export async function forkConversation(
  store: SessionStore,
  origin: SessionState,
  { folder, label, ...wanted }: ForkConversationOptions,
): Promise<SessionState> {
  const fork = await forkToNewSession(store, origin, { ...wanted, sessionId: systemRandom.uuid(), label: "" });
  return updateEntry(store, fork.ref, (entry) => ({
    ...inherited(origin, label),
    ...entry,
    cwd: folder,
    ...(label === undefined || label === "" ? {} : { label }),
  }));
}

function inherited({ entry }: SessionState, label: string | undefined): Partial<SessionEntry> {
  const { label: own, title, titleBy } = entry;
  return {
    ...(own === undefined || label !== undefined ? {} : { label: own }),
    ...(title === undefined ? {} : { title, ...(titleBy === undefined ? {} : { titleBy }) }),
  };
}
