import type { ListQuery, SessionState } from "@throughline/core";
import { type ListedSession, type ListSource, sessionsBehind, withinBytes } from "@throughline/store-kit/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { WantedSessions } from "./index-page.ts";
import { listAgent } from "./list-agent.ts";
import { sourceDigestOf } from "./undecodable-entry.ts";
import { createSlices } from "./slices.ts";
import { entryBytesOf, entryTextOf, type SessionSnapshot } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";

export interface ListContext {
  readonly context: StoreContext;
  readonly agents: readonly AgentSessionFiles[];
  readonly query: ListQuery;
  prepare(agent: AgentSessionFiles): Promise<void>;
  /** Throws when the caller no longer waits. */
  goOn(): void;
}

interface FoundSession extends ListedSession {
  readonly agent: AgentSessionFiles;
  readonly seen: SessionSnapshot;
}

export function listSource(
  scope: ListContext,
  plan: Pick<WantedSessions, "sort" | "sourceDigest">,
): ListSource<FoundSession> {
  const { context, agents, query } = scope;
  const slices = createSlices();
  let isPrepared = false;
  /** Holds the remaining sessions once all of them were read, so that later pages need no new search. */
  let left: FoundSession[] | null = null;
  const look = async (wanted: WantedSessions): Promise<readonly FoundSession[]> => {
    const found: FoundSession[] = [];
    let areAll = true;
    for (const agent of agents) {
      if (!isPrepared) await scope.prepare(agent);
      const listed = listAgent(context, agent, query, wanted);
      areAll &&= listed.isAll;
      for (const seen of listed.found) found.push(foundIn(agent, seen, plan.sourceDigest !== null));
      scope.goOn();
    }
    isPrepared = true;
    const behind = [...sessionsBehind(found, query, wanted.after)];
    if (areAll) left = behind;
    return behind;
  };
  return {
    path: context.root,
    find: async (after, limit) => {
      await slices.next();
      const behind = left ?? (await look({ sort: plan.sort, sourceDigest: plan.sourceDigest, after, limit }));
      const page = withinBytes(behind.slice(0, limit), ({ seen }) => entryBytesOf(seen), context.limits.pageBytes);
      left?.splice(0, page.length);
      return page;
    },
    stateOf: ({ agent, seen }) => {
      const state = agent.stateOf(seen);
      // The entry is copied, because the caller may change it.
      return { ...state, entry: JSON.parse(entryTextOf(seen)) as SessionState["entry"] };
    },
  };
}

function foundIn(agent: AgentSessionFiles, seen: SessionSnapshot, isBySource: boolean): FoundSession {
  const { sessionId, updatedAtMs } = seen.folded;
  const sourceDigest = isBySource ? sourceDigestOf(seen.folded) : null;
  return { ref: agent.refOf(seen.folded), sessionId, updatedAtMs, sourceDigest, agent, seen };
}
