import type { SessionState } from "@throughline/core";
import { createScratchMap, type ScratchMap } from "./scratch-map.ts";
import type { TranscriptSource } from "./transcript-source.ts";

type Claim = Pick<TranscriptSource, "path" | "key" | "isArchived">;

/**
 * Remembers which source of an import each session belongs to. An index may name one file under two keys. A program may
 * also have archived a copy of a transcript that it continues. Files of other formats have neither, so they claim
 * nothing. Claims are outside of the heap, because a folder may have 100,000 sessions.
 */
export class SourceClaims implements Disposable {
  #claims: ScratchMap | null = null;

  take(session: SessionState, { path, key, isArchived, foreign }: Claim & Pick<TranscriptSource, "foreign">): void {
    if (foreign !== undefined) return;
    this.#claims ??= createScratchMap();
    this.#claims.set(nameOf(session), JSON.stringify({ path, key, isArchived } satisfies Claim));
  }

  /** True if another source already has the session. */
  isTaken(session: SessionState, { path, key, isArchived }: Claim): boolean {
    const text = this.#claims?.get(nameOf(session)) ?? null;
    if (text === null) return false;
    const claim = JSON.parse(text) as Claim;
    if (claim.path !== path) return claim.isArchived !== isArchived;
    return claim.key !== null && key !== null && claim.key !== key;
  }

  [Symbol.dispose](): void {
    this.#claims?.[Symbol.dispose]();
  }
}

function nameOf({ ref, sessionId }: SessionState): string {
  return `${ref.agentId} ${sessionId}`;
}
