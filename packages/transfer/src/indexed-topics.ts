import { isSessionId } from "@throughline/core/internal";
import { classifySessionFile, type IndexedSession, transcriptFileNameOf } from "@throughline/openclaw-format/internal";
import { createScratchMap } from "./scratch-map.ts";

/** Collects the topics of a folder's index and files in scratch maps, because their number has no limit. */
export interface Topics extends Disposable {
  /** Must be called for every name of the folder before the other methods. */
  takeFile(name: string): void;
  /** Returns true for the entry of a topic and keeps it for {@link entries}. */
  takeEntry(session: IndexedSession): boolean;
  /** Yields the topic entries in the order of their keys, so that the order of the index has no effect. */
  entries(): Iterable<IndexedSession>;
  /**
   * Builds the key for a topic's file that no entry names: the conversation's key with the topic. Null when there is
   * none.
   */
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
      // The index may assign the key to another session, and a file name may hold characters that a key cannot.
      return !topics.has(key) && topicFileOf(key, sessionId) === name ? key : null;
    },
    [Symbol.dispose]: () => {
      topics[Symbol.dispose]();
      conversations[Symbol.dispose]();
    },
  };
}

/** Returns null for a session that is not a topic. */
export function topicFileOf(key: string | null, sessionId: string): string | null {
  if (key === null || !isSessionId(sessionId)) return null;
  const name = transcriptFileNameOf({ sessionId, key });
  return name === `${sessionId}.jsonl` ? null : name;
}
