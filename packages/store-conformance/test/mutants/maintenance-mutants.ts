import { createFinding } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import type { Finding, MaintenanceFacet, SessionStore } from "@throughline/core";
import type { Mutant } from "./mutant.ts";

type Asked = { readonly signal?: AbortSignal | undefined };
type Findings = AsyncGenerator<Finding, void, void>;

async function recordsOf(store: SessionStore): Promise<number> {
  const { sessions } = await store.list({ state: "any", limit: 1000 });
  return sessions.reduce((sum, { head }) => sum + head.lastSeq, 0);
}

const nothingFound: readonly Finding[] = [];

async function* reading(store: SessionStore, { signal }: Asked): Findings {
  const begin = (): void => {
    if (signal?.aborted === true)
      throw new ThroughlineError("ABORTED", "The signal was aborted.", { outcome: "not-applied" });
  };
  begin();
  const { sessions } = await store.list({ state: "any", limit: 1000 });
  for (const { ref } of sessions) {
    begin();
    for await (const _page of store.read(ref));
  }
  yield* nothingFound;
}

/** A store that is checked by reading it, and never has anything to repair. */
function soundMaintenance(inner: SessionStore): MaintenanceFacet {
  return {
    verify: (asked = {}) => reading(inner, asked),
    repair: (asked = {}) => reading(inner, asked),
    backup: async () => ({ sizeBytes: 0 }),
  };
}

export function maintained(inner: SessionStore, change: Partial<MaintenanceFacet>): Partial<SessionStore> {
  return {
    capabilities: Object.freeze({ ...inner.capabilities, maintenance: true }),
    maintenance: { ...soundMaintenance(inner), ...change },
  };
}

const damaged = createFinding("STORE_DAMAGED", "Nothing is wrong.");

export const maintenanceMutants: readonly Mutant[] = [
  {
    name: "a check that takes redactions for damage",
    foundBy: "maintenance/sound",
    handle: (inner) =>
      maintained(inner, {
        verify: async function* (asked = {}) {
          yield* reading(inner, asked);
          for (const { ref } of (await inner.list()).sessions)
            for await (const { records } of inner.read(ref))
              if (records.some(({ type }) => type !== "message")) yield damaged;
        },
      }),
  },
  {
    name: "a check that writes",
    foundBy: "maintenance/sound",
    handle: (inner) =>
      maintained(inner, {
        verify: async function* (asked = {}) {
          yield* reading(inner, asked);
          for (const { ref } of (await inner.list()).sessions)
            await inner.append(ref, [], { entry: { checked: true } });
        },
      }),
  },
  {
    name: "a repair that leaves the last record out",
    foundBy: "maintenance/repair-of-sound",
    handle: (inner) =>
      maintained(inner, {
        repair: async function* (asked = {}) {
          yield* reading(inner, asked);
          for (const { ref, head } of (await inner.list()).sessions)
            if (head.headId !== null) await inner.redact(ref, [head.headId], { reason: "repaired" });
        },
      }),
  },
  {
    name: "a repair that always finds something",
    foundBy: "maintenance/repair-of-sound",
    handle: (inner) =>
      maintained(inner, {
        repair: async function* () {
          yield damaged;
        },
      }),
  },
  {
    name: "a check that takes new records for damage",
    foundBy: "maintenance/while-writing",
    handle: (inner) =>
      maintained(inner, {
        verify: async function* (asked = {}) {
          const before = await recordsOf(inner);
          yield* reading(inner, asked);
          if ((await recordsOf(inner)) !== before) yield damaged;
        },
      }),
  },
  {
    name: "a check that goes on when it was aborted",
    foundBy: "maintenance/aborted",
    handle: (inner) => maintained(inner, { verify: () => reading(inner, {}) }),
  },
  {
    name: "a repair that goes on when it was aborted",
    foundBy: "maintenance/aborted",
    handle: (inner) => maintained(inner, { repair: () => reading(inner, {}) }),
  },
  {
    name: "a check of a closed store that finds nothing",
    foundBy: "maintenance/closed",
    handle: (inner) =>
      maintained(inner, {
        verify: async function* (asked = {}) {
          try {
            yield* reading(inner, asked);
          } catch (error) {
            if (asked.signal?.aborted === true) throw error;
          }
        },
      }),
  },
];
