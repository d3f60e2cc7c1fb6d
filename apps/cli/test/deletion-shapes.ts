import { count, kind, list, listOf, object, one, or, text, type Shape } from "./shape-checks.ts";

/** The proof of deletion that \`delete --shred\` gives. */
const proof = object({
  version: count,
  keyringId: text,
  keyIds: list,
  destroyedAt: text,
  reason: text,
  signature: text,
});

/** What `delete --purge` and `delete --user` print. */
export const deletionShapes: Readonly<Record<string, Shape>> = {
  agentErasure: { ...kind, agentId: text, sessions: count, files: count, proof },
  removed: { ...kind, agentId: text, key: text, sessionId: text, proof: or(proof) },
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
      unusedFiles: or(count),
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
    proof: or(proof),
  },
};
