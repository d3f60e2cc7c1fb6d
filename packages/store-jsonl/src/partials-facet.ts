import type { PartialReply, PartialsFacet, SessionRef } from "@throughline/core";
import type { StoreLimits } from "@throughline/core/internal";
import { KeyedQueues } from "@throughline/core/internal";
import { assertFence, assertPartialFits, isPartialOf, preparePartial } from "@throughline/store-kit/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { locateSession } from "./under-locks.ts";

export interface PartialsContext {
  readonly limits: StoreLimits;
  readonly agentOf: (ref: SessionRef) => AgentSessionFiles;
  /** @throws {ThroughlineError} STORE_CLOSED */
  readonly begin: () => void;
  /** Runs work that `close` waits for. */
  readonly track: <Result>(work: () => Promise<Result>) => Promise<Result>;
}

export function createPartials({ limits, agentOf, begin, track }: PartialsContext): PartialsFacet {
  /** Writes of one session run one after another, because each appends to the previous one. */
  const writing = new KeyedQueues();
  return {
    write: (ref, given) =>
      track(async () => {
        begin();
        const kept = preparePartial(given, limits);
        const agent = agentOf(ref);
        await writing.run(`${ref.namespace}/${ref.agentId}/${kept.partial.sessionId}`, async () => {
          await assertOpen(agent, ref, kept.partial);
          await agent.partials.write({ ref, sessionId: kept.partial.sessionId }, kept);
          // The session may have been archived, reset or taken over during the write, before the new file could be
          // removed with the others.
          await assertOpen(agent, ref, kept.partial).catch((error: unknown) => {
            agent.partials.remove(kept.partial.sessionId, { toFence: kept.partial.fence, isFlushed: true });
            throw error;
          });
        });
      }),
    read: (ref) =>
      track(async () => {
        begin();
        const agent = agentOf(ref);
        const row = await locateSession(agent, ref, true);
        if (row.isArchived) return null;
        // A session without a transcript has no open turn.
        const head = agent.open(row)?.transcript.head;
        if (head?.turn == null) return null;
        const found = agent.partials.read({ ref, sessionId: row.sessionId }, head.turn);
        return found !== null && isPartialOf(head, found) ? found : null;
      }),
    remove: (ref, fence) =>
      track(async () => {
        begin();
        assertFence(fence);
        const agent = agentOf(ref);
        const row = agent.exists ? await agent.locate(ref) : null;
        if (row !== null) agent.partials.remove(row.sessionId, { toFence: fence, isFlushed: false });
      }),
  };
}

/** @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_ARCHIVED, TURN_FENCED */
async function assertOpen(agent: AgentSessionFiles, ref: SessionRef, partial: PartialReply): Promise<void> {
  const row = await locateSession(agent, ref, false);
  assertPartialFits(ref, agent.openExisting(row).transcript.head, partial);
}
