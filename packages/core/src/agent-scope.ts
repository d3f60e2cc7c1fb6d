import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import { assertAgentId, assertNamespace, quote } from "./session-id.ts";
import { parseSessionKey } from "./session-key.ts";
import type { SessionRef } from "./session-ref.ts";
import type { ListQuery, SessionStore } from "./session-store.ts";
import type { FilesFacet, FileScope, PartialsFacet, SearchQuery } from "./store-facets.ts";
import { readWindow } from "./read-window.ts";
import { refused } from "./refused.ts";
import type { VectorScope, VectorsFacet } from "./vectors-facet.ts";

/** Sets the agent and the namespace of a scope. */
export interface AgentScopeOptions {
  /** Names the agent whose sessions the scope shows. */
  readonly agentId: string;
  /** Names the namespace whose sessions the scope shows. @default "" */
  readonly namespace?: string | undefined;
}

const { required, text } = optionKinds;
const scopeTable: OptionTable<AgentScopeOptions> = { agentId: required(text), namespace: text };

/**
 * Returns a store in which only one agent's sessions exist. The scope refuses every request for another agent's session
 * before the store receives it, whether an address, a query or a key names it. Lists and searches return only sessions
 * of the agent. Checks and repairs concern every session of a store, so a scope has no `maintenance`. Closing the scope
 * closes the store.
 * @throws {ThroughlineError} INPUT_INVALID, AGENT_ID_INVALID, NAMESPACE_INVALID; every operation: KEY_AGENT_MISMATCH
 */
export function createAgentScope(store: SessionStore, options: AgentScopeOptions): SessionStore {
  assertKnownOptions<AgentScopeOptions>("createAgentScope", options, scopeTable);
  const { agentId, namespace = "" } = options;
  assertAgentId(agentId);
  assertNamespace(namespace);
  const inScope = (ref: SessionRef): SessionRef => {
    if (ref.agentId !== agentId || ref.namespace !== namespace) {
      throw outside(agentId, { agentId: ref.agentId, namespace: ref.namespace, key: ref.key });
    }
    assertKey(ref.key);
    return ref;
  };
  const assertKey = (key: string): void => {
    const named = parseSessionKey(key).agentId;
    if (named !== null && named !== agentId) throw outside(agentId, { agentId: named, key });
  };
  const scoped = <Query extends ListQuery | SearchQuery>(query: Query): Query => {
    const isOther = query.agentId !== undefined && query.agentId !== agentId;
    if (isOther || (query.namespace ?? namespace) !== namespace) throw outside(agentId, { ...query });
    return { ...query, agentId, namespace };
  };
  const { search, watch, fork, partials, files, vectors } = store;
  return {
    capabilities: Object.freeze({ ...store.capabilities, maintenance: false }),
    ...(search === undefined
      ? {}
      : { search: { search: (query) => search.search(scoped(query)), lag: () => search.lag() } }),
    ...(watch === undefined ? {} : { watch: { watch: (ref, given) => watch.watch(inScope(ref), given) } }),
    ...(fork === undefined
      ? {}
      : {
          fork: {
            ...(fork.recodesOnPurge === undefined ? {} : { recodesOnPurge: fork.recodesOnPurge }),
            fork: async (ref, target, given) => fork.fork(inScope(ref), inScope(target), given),
            ...(fork.sharers === undefined
              ? {}
              : { sharers: async (ref, seqs) => (await fork.sharers?.(inScope(ref), seqs)) ?? [] }),
          },
        }),
    ...(partials === undefined ? {} : { partials: scopedPartials(partials, inScope) }),
    ...(files === undefined ? {} : { files: scopedFiles(files, { agentId, namespace }) }),
    ...(vectors === undefined ? {} : { vectors: scopedVectors(vectors, inScope, { agentId, namespace }) }),
    // The methods are async, so that a refusal is a rejection and not an error thrown past the caller's `catch`.
    append: async (ref, drafts, given) => store.append(inScope(ref), drafts, given),
    read: (ref, given) => store.read(inScope(ref), given),
    ...(store.readWindow === undefined
      ? {}
      : { readWindow: async (ref, given) => readWindow(store, inScope(ref), given) }),
    load: async (ref, given) => store.load(inScope(ref), given),
    save: async (ref, entry, given) => store.save(inScope(ref), entry, given),
    list: async (query = {}) => store.list(scoped(query)),
    move: async (ref, action) => {
      if (action.kind === "rename") assertKey(action.key);
      return store.move(inScope(ref), action);
    },
    remove: async (ref, given) => store.remove(inScope(ref), given),
    redact: async (ref, ids, given) => store.redact(inScope(ref), ids, given),
    close: () => store.close(),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

function scopedPartials(partials: PartialsFacet, inScope: (ref: SessionRef) => SessionRef): PartialsFacet {
  return {
    write: async (ref, partial) => partials.write(inScope(ref), partial),
    read: async (ref) => partials.read(inScope(ref)),
    remove: async (ref, fence) => partials.remove(inScope(ref), fence),
  };
}

function scopedFiles(files: FilesFacet, { agentId, namespace }: FileScope): FilesFacet {
  const inScope = <Scope extends FileScope>(scope: Scope): Scope => sameScope({ agentId, namespace }, scope);
  return {
    put: async (scope, content, given) => files.put(inScope(scope), content, given),
    get: (scope, id, given) => files.get(inScope(scope), id, given),
    stat: async (scope, id) => files.stat(inScope(scope), id),
    delete: async (scope, id) => files.delete(inScope(scope), id),
    list: (scope, given) => files.list(inScope(scope), given),
  };
}

function scopedVectors(
  vectors: VectorsFacet,
  inScope: (ref: SessionRef) => SessionRef,
  scope: VectorScope,
): VectorsFacet {
  return {
    put: async (ref, put, given) => vectors.put(inScope(ref), put, given),
    nearest: async (query) => {
      if (query.key !== undefined) inScope({ ...sameScope(scope, query), key: query.key });
      return vectors.nearest(sameScope(scope, query));
    },
    forget: async (asked, given) => vectors.forget(sameScope(scope, asked), given),
    pending: async (asked, query) => vectors.pending(sameScope(scope, asked), query),
  };
}

function sameScope<Scope extends FileScope>({ agentId, namespace }: FileScope, asked: Scope): Scope {
  if (asked.agentId === agentId && asked.namespace === namespace) return asked;
  throw outside(agentId, { agentId: asked.agentId, namespace: asked.namespace });
}

function outside(agentId: string, asked: Readonly<Record<string, unknown>>): Error {
  const what = asked["key"] === undefined ? "sessions" : `the session ${quote(asked["key"])}`;
  return refused("KEY_AGENT_MISMATCH", `Agent ${quote(agentId)} may not reach ${what} of another agent.`, {
    scope: agentId,
    ...asked,
  });
}
