import { createHash } from "node:crypto";
import type { SessionState } from "@throughline/core";
import type { TranscriptSource } from "./transcript-source.ts";

type Claim = Pick<TranscriptSource, "path" | "key" | "isArchived" | "foreign">;

/**
 * Remembers which source of an import each session belongs to. An index may name one file under two keys. A program may
 * also have archived a copy of a transcript that it continues. Files of other formats have neither, so they claim
 * nothing. A claim has few bytes, because an import may have 100,000 sessions.
 */
export class SourceClaims {
  readonly #claims = new Map<string, string>();

  take(session: SessionState, source: Claim): void {
    if (source.foreign === undefined) this.#claims.set(nameOf(session), claimText(source));
  }

  /** True if another source already has the session. */
  isTaken(session: SessionState, source: Claim): boolean {
    const claim = this.#claims.get(nameOf(session));
    if (claim === undefined) return false;
    const [path, key, isArchived] = claim.split(" ");
    const [ownPath, ownKey, isOwnArchived] = claimText(source).split(" ");
    if (path !== ownPath) return isArchived !== isOwnArchived;
    return key !== "" && ownKey !== "" && key !== ownKey;
  }
}

function nameOf({ ref, sessionId }: SessionState): string {
  return `${ref.agentId} ${sessionId}`;
}

function claimText({ path, key, isArchived }: Claim): string {
  return `${digest(path)} ${key === null ? "" : digest(key)} ${isArchived}`;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 12);
}
