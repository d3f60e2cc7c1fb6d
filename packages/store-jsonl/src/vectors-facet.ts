import { setImmediate as pause } from "node:timers/promises";
import {
  hasErrorCode,
  type ListQuery,
  type PayloadCodec,
  type SessionPage,
  type SessionRef,
  type VectorsFacet,
} from "@throughline/core";
import {
  type PendingQuery,
  type PendingRange,
  type PendingVectors,
  quote,
  refused,
  type VectorScope,
} from "@throughline/core/internal";
import {
  createVectorsFacet,
  type HandleLife,
  type KeptPut,
  type ShownSession,
  type VectorBackend,
  type VectorSession,
} from "@throughline/store-kit/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { StoreContext } from "./store-context.ts";
import { locateSession, underLocks } from "./under-locks.ts";

export interface VectorsContext {
  readonly context: StoreContext;
  readonly life: HandleLife;
  readonly agentAt: (scope: VectorScope) => AgentSessionFiles;
  readonly list: (query: ListQuery) => Promise<SessionPage>;
  /** Runs work that `close` waits for. */
  readonly track: <Result>(work: () => Promise<Result>) => Promise<Result>;
}

/** Keeps vectors in a derived database of each agent, which is a scope of vectors. */
export function createVectors(scope: VectorsContext, codec: PayloadCodec | undefined): VectorsFacet {
  return createVectorsFacet(backendOf(scope), scope.life, codec);
}

function backendOf(scope: VectorsContext): VectorBackend {
  const { agentAt, track } = scope;
  return {
    put: (ref, put) => track(() => putUnderLock(scope, ref, put)),
    forget: (at, keep) => track(() => agentAt(at).vectors.forget(keep, pause)),
    pending: (at, query) => pendingIn(scope, at, query),
    shown: (query) => track(async () => shownIn(agentAt(query), query)),
    codes: (at, model, after, limit) => track(async () => agentAt(at).vectors.codes(model, after, limit)),
    sessionIds: (at, owners) => track(async () => agentAt(at).vectors.sessionIds(owners)),
    vectors: (at, model, numbers) => track(async () => agentAt(at).vectors.vectors(model, numbers)),
  };
}

/** A redaction and a purge take the same lock, so neither can come between the look at the mark and the commit. */
async function putUnderLock({ context, agentAt }: VectorsContext, ref: SessionRef, put: KeptPut): Promise<boolean> {
  const agent = agentAt(ref);
  assertLocal(agent);
  const find = async (): Promise<Awaited<ReturnType<typeof locateSession>>> => {
    const row = await locateSession(agent, ref, true);
    await agent.prepare(row);
    return row;
  };
  try {
    const { isPut } = await underLocks({ context, agent, durability: "process" }, ref, { find }, (row) => {
      const lastSeq = agent.open(row)?.transcript.head.lastSeq ?? 0;
      return { isPut: put.toSeq <= lastSeq && agent.vectors.put(row.sessionId, put) };
    });
    return isPut;
  } catch (error) {
    if (hasErrorCode(error, "SESSION_NOT_FOUND")) return false;
    throw error;
  }
}

/** Takes the sessions page by page, and the loop gets a turn after each step, because an agent may have many. */
async function pendingIn(
  scope: VectorsContext,
  at: VectorScope,
  { model, limit, signal }: PendingQuery & { readonly limit: number },
): Promise<PendingVectors> {
  const { agentAt, track } = scope;
  const agent = agentAt(at);
  assertLocal(agent);
  await track(async () => {
    agent.log.refresh();
    agent.vectors.dropUnless((id) => agent.log.row(id) !== null);
  });
  const ranges: PendingRange[] = [];
  let records = 0;
  for await (const sessions of sessionPages(scope, at, signal)) {
    await pause();
    const found = await track(async () => agent.vectors.pending(model, sessions, limit - ranges.length));
    ranges.push(...found.ranges);
    records += found.records;
    await pause();
  }
  return { ranges, records, hasOthers: await track(async () => agent.vectors.hasOthers(model)) };
}

/** Looking at this many sessions and their files takes a few milliseconds. */
const sessionsAtOnce = 200;

async function* sessionPages(
  { list }: VectorsContext,
  { namespace, agentId }: VectorScope,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly VectorSession[]> {
  let cursor: string | null = null;
  do {
    const page: SessionPage = await list({
      namespace,
      agentId,
      state: "any",
      limit: sessionsAtOnce,
      signal,
      ...(cursor === null ? {} : { cursor }),
    });
    yield page.sessions.map(({ ref, sessionId, head, updatedAtMs }) => ({
      id: sessionId,
      ref,
      sessionId,
      lastSeq: head.lastSeq,
      updatedAtMs,
    }));
    cursor = page.nextCursor;
  } while (cursor !== null);
}

/** A fork has copies of the records, so each session shows its own vectors. */
function shownIn(
  agent: AgentSessionFiles,
  { key, state = "any" }: Parameters<VectorBackend["shown"]>[0],
): readonly ShownSession[] {
  agent.log.refresh();
  return agent.vectors.owners().flatMap(({ place, id }): readonly ShownSession[] => {
    const row = agent.log.row(id);
    if (row === null || (key !== undefined && row.key !== key)) return [];
    if (state !== "any" && (state === "archived") !== row.isArchived) return [];
    return [{ owner: place, toSeq: Infinity, ref: agent.refOf(row), sessionId: id }];
  });
}

/** @throws {ThroughlineError} STORE_UNSUPPORTED: SQLite's locks are for one host */
function assertLocal({ folder, location }: AgentSessionFiles): void {
  if (location.isRemote)
    throw refused(
      "STORE_UNSUPPORTED",
      `${quote(folder.agent)} is on a network file system, where no vectors are kept.`,
      {
        path: folder.agent,
      },
    );
}
