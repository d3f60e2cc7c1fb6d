import { updateEntry } from "@throughline/core/internal";
import type { SessionEntry, SessionRef, SessionState, SessionStore } from "@throughline/core";
import { titleOf } from "@throughline/history/internal";

/** The entry fields of a fork: the label and title of the session it continues, and the folder it belongs to. */
export function forkFields({ entry }: SessionState, folder: string): Partial<SessionEntry> {
  const { label, title, titleBy } = entry;
  return {
    cwd: folder,
    ...(label === undefined ? {} : { label }),
    ...(title === undefined ? {} : { title, ...(titleBy === undefined ? {} : { titleBy }) }),
  };
}

/** Gives a session without a title the one that the words of a turn make. */
export async function turnTitle(store: SessionStore, ref: SessionRef, text: string): Promise<void> {
  const state = await store.load(ref);
  if (state === null || state.entry.title !== undefined) return;
  const title = titleOf([text]);
  if (title === null) return;
  await updateEntry(store, ref, (entry) => (entry.title === undefined ? { ...entry, title, titleBy: "rules" } : entry));
}
