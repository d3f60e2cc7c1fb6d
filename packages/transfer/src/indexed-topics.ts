import { isSessionId } from "@throughline/core/internal";
import { classifySessionFile, type IndexedSession, transcriptFileNameOf } from "@throughline/openclaw-format/internal";
import { createScratchMap } from "./scratch-map.ts";

/** The topics of a folder's index and of its files, however many there are. */
export interface Topics extends Disposable {
  /** Call it for every name of the folder first. */
  takeFile(name: string): void;
  /** Whether the entry is that of a topic. Then it is kept for {@link entries}. */
  takeEntry(session: IndexedSession): boolean;
  /** The entries of topics in the order of their keys: the order of the index decides nothing. */
  entries(): Iterable<IndexedSession>;
  /** The key for the file of a topic that no entry names: that of its conversation, with the topic. Null: none. */
  keyOfFile(name: string): string | null;
}

export function createTopics(): Topics {
  const topics = createScratchMap();
  const conversations = createScratchMap();
  return {
    takeFile(name) {
      const { sessionId, topicId } = classifySessionFile(name);
      if (sessionId !== null && topicId !== null) conversations.set(sessionId, "");
    },
    takeEntry(session) {
      const { key, sessionId } = session;
      if (key === null) return false;
      const isTopic = topicFileOf(key, "x") !== null;
      if (isTopic) topics.set(key, JSON.stringify(session));
      const known = isTopic ? null : conversations.get(sessionId);
      if (known !== null && (known === "" || key < known)) conversations.set(sessionId, key);
      return isTopic;
    },
    *entries() {
      for (const [, text] of topics.entries()) yield JSON.parse(text) as IndexedSession;
    },
    keyOfFile(name) {
      const { sessionId, topicId } = classifySessionFile(name);
      const parent = sessionId === null || topicId === null ? "" : (conversations.get(sessionId) ?? "");
      if (sessionId === null || parent === "") return null;
      const key = `${parent}:topic:${topicId}`;
      // The index may have given the key to another session, and a name may hold what no key can.
      return !topics.has(key) && topicFileOf(key, sessionId) === name ? key : null;
    },
    [Symbol.dispose]: () => {
      topics[Symbol.dispose]();
      conversations[Symbol.dispose]();
    },
  };
}

/** The name of a topic's transcript by its key; null for any other session. */
export function topicFileOf(key: string | null, sessionId: string): string | null {
  if (key === null || !isSessionId(sessionId)) return null;
  const name = transcriptFileNameOf({ sessionId, key });
  return name === `${sessionId}.jsonl` ? null : name;
}
