import {
  createFinding,
  hasErrorCode,
  sessionRef,
  ThroughlineError,
  type Finding,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { parseSessionKey } from "@throughline/core/keys";
import { quote } from "@throughline/core/store";
import { hashPrefix } from "./hash-prefix.ts";
import { receiptOf } from "./import-receipt.ts";
import type { ImportOptions } from "./import-types.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/** Where a source goes: the session an earlier run made of it, or a free key. */
export interface ImportTarget {
  readonly ref: SessionRef;
  readonly state: SessionState | null;
  /** The key the source states, when the session cannot have it. */
  readonly refusedKey: string | null;
  readonly findings: readonly Finding[];
}

/** More sessions that want the same key are a mistake and not an import. */
const maxSuffix = 10_000;

/** @throws {ThroughlineError} SESSION_EXISTS when the caller's own key belongs to another session */
export async function findTarget(
  store: SessionStore,
  source: TranscriptSource,
  options: ImportOptions,
): Promise<ImportTarget> {
  const { base, refusedKey, findings } = baseRef(source, options);
  if (source.isArchived) {
    const archived = await findArchived(store, base, source);
    if (archived !== null) return { ref: archived.ref, state: archived, refusedKey, findings };
  }
  for (let suffix = 1; suffix <= maxSuffix; suffix++) {
    const ref = suffix === 1 ? base : { ...base, key: `${base.key}-${suffix}` };
    const state = await store.load(ref);
    if (state === null || (await isOf(state, source))) return { ref, state, refusedKey, findings };
    if (options.key !== undefined) break;
  }
  throw new ThroughlineError("SESSION_EXISTS", `The key ${quote(base.key)} belongs to another session.`, {
    outcome: "not-applied",
    details: { ...base },
  });
}

function baseRef(
  source: TranscriptSource,
  options: ImportOptions,
): { readonly base: SessionRef; readonly refusedKey: string | null; readonly findings: readonly Finding[] } {
  const namespace = options.namespace ?? "";
  if (options.key !== undefined) {
    return {
      base: sessionRef({ key: options.key, namespace, ...agentFor(options.key, options.agentId) }),
      refusedKey: null,
      findings: [],
    };
  }
  const { key } = source;
  if (key !== null) {
    try {
      const agent = source.agentId === null ? agentFor(key, options.agentId) : { agentId: source.agentId };
      return { base: sessionRef({ key, namespace, ...agent }), refusedKey: null, findings: [] };
    } catch (error) {
      if (!hasErrorCode(error, "KEY_INVALID", "KEY_AGENT_MISMATCH", "AGENT_ID_INVALID")) throw error;
      const finding = createFinding("SESSION_UNINDEXED", error.message, { path: source.path, key });
      return { base: madeRef(source, options), refusedKey: key, findings: [finding] };
    }
  }
  return { base: madeRef(source, options), refusedKey: null, findings: [] };
}

/** A key that names its agent needs no other. */
function agentFor(key: string, agentId: string | undefined): { readonly agentId?: string } {
  return agentId === undefined || parseSessionKey(key).agentId !== null ? {} : { agentId };
}

function madeRef(source: TranscriptSource, options: ImportOptions): SessionRef {
  const agentId = source.agentId ?? options.agentId ?? "main";
  return sessionRef({
    key: `agent:${agentId}:import:direct:${source.sessionId}`,
    agentId,
    namespace: options.namespace ?? "",
  });
}

async function findArchived(
  store: SessionStore,
  base: SessionRef,
  source: TranscriptSource,
): Promise<SessionState | null> {
  const { namespace, agentId, key } = base;
  let cursor: string | null = null;
  do {
    const page = await store.list({
      namespace,
      agentId,
      state: "archived",
      keyPrefix: key,
      sort: "key",
      limit: 200,
      ...(cursor === null ? {} : { cursor }),
    });
    for (const state of page.sessions) if (await isOf(state, source)) return state;
    cursor = page.nextCursor;
  } while (cursor !== null);
  return null;
}

/** Whether the session was made of this file, or of one with the same beginning that lay elsewhere. */
async function isOf(state: SessionState, source: TranscriptSource): Promise<boolean> {
  const receipt = receiptOf(state.entry);
  if (receipt === null) return false;
  if (receipt.path === source.path) return true;
  if (receipt.sessionId !== source.sessionId || receipt.sizeBytes === 0 || source.open === null) return false;
  return (await hashPrefix(source.open, receipt.sizeBytes)) === receipt.sha256;
}
