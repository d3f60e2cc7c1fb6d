import type { SessionEntry, SessionState } from "@throughline/core";

/** A fork keeps the label and title of its origin, so that users recognize the conversation. */
export function forkFields({ entry }: SessionState, folder: string): Partial<SessionEntry> {
  const { label, title, titleBy } = entry;
  return {
    cwd: folder,
    ...(label === undefined ? {} : { label }),
    ...(title === undefined ? {} : { title, ...(titleBy === undefined ? {} : { titleBy }) }),
  };
}
