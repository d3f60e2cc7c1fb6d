import type { SearchHit, SessionState, SessionStore } from "@throughline/core";
import { HitGroups } from "@throughline/core/internal";
import { findHits } from "@throughline/tools/internal/search";

export interface TextHit {
  readonly hit: SearchHit;
  /** Counts the other hits in the session. */
  readonly more: number;
}

export interface TextHits {
  readonly sessions: readonly TextHit[];
  readonly hitCount: number;
  /** True if there may be more. */
  readonly isCut: boolean;
}

export const noTextHits: TextHits = { sessions: [], hitCount: 0, isCut: false };

export interface TextQuery {
  readonly text: string;
  readonly namespace: string;
  /** Null searches those of all agents. */
  readonly agentId: string | null;
  readonly isWithArchives: boolean;
  readonly isWanted: (state: SessionState) => boolean;
  readonly signal: AbortSignal;
}

const mostHits = 50;
export const leastCharacters = 2;

/** Searches the texts of sessions; the last word may be the beginning of one. */
export async function findTexts(store: SessionStore, query: TextQuery): Promise<TextHits> {
  const { text, namespace, agentId, isWithArchives, isWanted, signal } = query;
  const { hits } = findHits(store, {
    text: /[\p{L}\p{N}]$/u.test(text) && !text.includes('"') ? `${text}*` : text,
    namespace,
    agentId,
    state: isWithArchives ? "any" : "active",
    session: null,
    limit: mostHits + 1,
    isScan: false,
    isWanted,
    signal,
  });
  const groups = new HitGroups(1, { isRanked: true });
  let hitCount = 0;
  let isCut = false;
  for await (const hit of hits) {
    signal.throwIfAborted();
    isCut = hitCount >= mostHits;
    if (isCut) break;
    hitCount += 1;
    groups.add(hit);
  }
  const sessions = groups.take().flatMap(({ best: [hit], more }) => (hit === undefined ? [] : [{ hit, more }]));
  return { sessions, hitCount, isCut };
}
