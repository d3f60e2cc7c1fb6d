import { createFinding, quote, sessionRefText } from "@throughline/core/internal";
import { listPosition, type ListedSession, type ListPlan, type ListPosition } from "./list-page.ts";
import { hasErrorCode, type SessionRef, type ThroughlineError } from "@throughline/core";
import type { SessionEvent, SessionPage, SessionState } from "@throughline/core";

export interface ListSource<Found extends ListedSession> {
  /**
   * Returns the sessions after a position, in the plan's order: at least `limit`. Fewer sessions mean that no more
   * follow, or that the last session ends the page. The list calls again after sessions that cannot be read, which may
   * be many. A store that answers from memory or a file should then let other work run first.
   */
  find(after: ListPosition | null, limit: number): readonly Found[] | Promise<readonly Found[]>;
  /** @throws {ThroughlineError} STORE_CORRUPT, CODEC_FAILED for a session that cannot be read */
  stateOf(found: Found): SessionState;
  /** Findings name this file or server. */
  readonly path: string | null;
}

/**
 * After unreadable sessions, a list requests this number at a time and doubles it each time, because all remaining
 * sessions may be unreadable.
 */
const firstSlice = 100;
const largestSlice = 800;

interface Unread {
  readonly name: string;
  readonly ref: SessionRef;
  readonly message: string;
}

interface UnreadOfPage {
  readonly told: Unread[];
  first: ThroughlineError | null;
  areAllCodecs: boolean;
}

/**
 * Fills the pages of one handle's lists. An unreadable session hides no other session, because the page is filled with
 * later sessions. A finding names the session once, until it can be read again.
 */
export class ListedStates {
  readonly #announce: (event: SessionEvent) => void;
  readonly #told = new Set<string>();

  constructor(announce: (event: SessionEvent) => void) {
    this.#announce = announce;
  }

  /**
   * Fills one page of the list.
   *
   * @throws {ThroughlineError} CODEC_FAILED if a list from its start finds sessions and the codec decodes none of them:
   * that is the wrong codec, not damage
   */
  async page<Found extends ListedSession>(plan: ListPlan, source: ListSource<Found>): Promise<SessionPage> {
    const sessions: SessionState[] = [];
    const unread: UnreadOfPage = { told: [], first: null, areAllCodecs: true };
    const done = (nextCursor: string | null): SessionPage => {
      for (const one of unread.told) this.#tell(one, source.path);
      return { sessions, nextCursor };
    };
    let lastShown: ListPosition = [];
    let slice = 0;
    for (let after = plan.after; ;) {
      // One session more than the page holds shows whether another page follows.
      const wanted = Math.max(plan.limit - sessions.length + 1, slice);
      const given = source.find(after, wanted);
      // A store that answers without waiting is asked for states at once, so that no session of the answer has moved by
      // then.
      const found = given instanceof Promise ? await given : given;
      for (const one of found) {
        after = listPosition(one, plan.sort);
        const state = this.#read(one, source, unread);
        if (state === null) continue;
        if (sessions.length === plan.limit) return done(plan.cursorAt(lastShown));
        sessions.push(state);
        lastShown = after;
      }
      const endsPage = found.at(-1)?.endsPage === true;
      if (endsPage && sessions.length > 0) return done(plan.cursorAt(lastShown));
      if (found.length < wanted && !endsPage) break;
      if (unread.first !== null) slice = Math.min(Math.max(slice * 2, firstSlice), largestSlice);
    }
    if (sessions.length === 0 && plan.after === null && unread.areAllCodecs && unread.first !== null)
      throw unread.first;
    return done(null);
  }

  #read<Found extends ListedSession>(
    found: Found,
    source: ListSource<Found>,
    unread: UnreadOfPage,
  ): SessionState | null {
    const name = nameOf(found);
    try {
      const state = source.stateOf(found);
      this.#told.delete(name);
      return state;
    } catch (error) {
      if (!hasErrorCode(error, "STORE_CORRUPT", "CODEC_FAILED")) throw error;
      unread.first ??= error;
      unread.areAllCodecs &&= error.code === "CODEC_FAILED";
      // Only the name, the ref and the message are kept in memory, because all sessions may be unreadable.
      if (!this.#told.has(name)) unread.told.push({ name, ref: found.ref, message: error.message });
      return null;
    }
  }

  /** Reports a session that no list may ever return, because its damage hides it from lists. */
  report(found: ListedSession, error: ThroughlineError, path: string | null): void {
    this.#tell({ name: nameOf(found), ref: found.ref, message: error.message }, path);
  }

  #tell({ name, ref, message: why }: Unread, path: string | null): void {
    if (this.#told.has(name)) return;
    this.#told.add(name);
    const { key } = ref;
    const message = `The session ${quote(key)} cannot be read and is left out of the list: ${why}`;
    const finding = createFinding("STORE_DAMAGED", message, { path, key });
    this.#announce({ name: "finding", ref, finding });
  }
}

function nameOf({ ref, sessionId }: ListedSession): string {
  return JSON.stringify([sessionRefText(ref), sessionId]);
}
