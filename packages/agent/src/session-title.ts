import { updateEntry } from "@throughline/core/internal";
import type { SessionEntry, SessionRef, SessionState, SessionStore } from "@throughline/core";
import { titleOf } from "@throughline/history/internal";

/** A fork keeps the label and title of its origin, so that users recognize the conversation. */
export function forkFields({ entry }: SessionState, folder: string): Partial<SessionEntry> {
  const { label, title, titleBy } = entry;
  return {
    cwd: folder,
    ...(label === undefined ? {} : { label }),
    ...(title === undefined ? {} : { title, ...(titleBy === undefined ? {} : { titleBy }) }),
  };
}

export async function turnTitle(store: SessionStore, ref: SessionRef, text: string): Promise<void> {
  const state = await store.load(ref);
  if (state === null || state.entry.title !== undefined) return;
  const title = titleOf([text]);
  if (title === null) return;
  await updateEntry(store, ref, (entry) => (entry.title === undefined ? { ...entry, title, titleBy: "rules" } : entry));
}
