import { count, kind, list, listOf, object, one, or, text, type Shape } from "./shape-checks.ts";

/** What `delete --purge` and `delete --user` print. */
export const deletionShapes: Readonly<Record<string, Shape>> = {
  removed: { ...kind, agentId: text, key: text, sessionId: text },
  userDeletion: {
    ...kind,
    state: one("planned", "deleted"),
    counts: object({
      sessions: count,
      archived: count,
      records: count,
      messages: count,
      summaries: count,
      notes: count,
      wireFrames: count,
      files: or(count),
      partials: count,
      searchRows: or(count),
      unread: count,
    }),
    sessions: listOf({
      agentId: text,
      key: text,
      sessionId: text,
      archiveId: or(text),
      because: one("key", "fork", "spawned"),
    }),
    notReached: list,
  },
};
