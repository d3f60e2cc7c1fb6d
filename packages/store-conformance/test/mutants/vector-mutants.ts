import type { SessionRef, VectorsFacet } from "@throughline/core";
import type { NearestHit, VectorPut } from "@throughline/core/internal";
import type { Mutant, MutantWorld } from "./mutant.ts";
import { noted } from "./mutant.ts";

type Inner = Parameters<NonNullable<Mutant["handle"]>>[0];

/** The facet with some of its members wrong. */
function broken(
  change: (facet: VectorsFacet, inner: Inner, world: MutantWorld) => Partial<VectorsFacet>,
): NonNullable<Mutant["handle"]> {
  return (inner, world) => {
    const facet = inner.vectors;
    return facet === undefined ? {} : { vectors: { ...facet, ...change(facet, inner, world) } };
  };
}

/** Gives vectors again that were put before, under the current mark. */
async function putAgain(facet: VectorsFacet, ref: SessionRef, put: VectorPut): Promise<boolean> {
  const { ranges } = await facet.pending(ref, { model: put.model, limit: 1000 });
  const mark = ranges.find((range) => range.ref.key === ref.key)?.mark;
  return mark !== undefined && facet.put(ref, { ...put, mark });
}

interface NotedPut {
  readonly ref: SessionRef;
  readonly put: VectorPut;
}

const puts = (world: MutantWorld): NotedPut[] => noted<NotedPut[]>(world, "puts", () => []);

const byScore = (hits: readonly NearestHit[]): readonly NearestHit[] =>
  hits.toSorted((one, other) => one.score - other.score);

export const vectorMutants: readonly Mutant[] = [
  {
    name: "the farthest vector comes first",
    foundBy: "vectors/nearest",
    handle: broken((facet) => ({ nearest: async (query) => byScore(await facet.nearest(query)) })),
  },
  {
    name: "the number of nearest vectors has no limit",
    foundBy: "vectors/nearest",
    handle: broken((facet) => ({ nearest: ({ limit: _limit, ...query }) => facet.nearest(query) })),
  },
  {
    name: "only the first 200 vectors are compared",
    foundBy: "vectors/many",
    handle: broken((facet) => ({
      put: (ref, put) => facet.put(ref, { ...put, vectors: put.vectors.slice(0, 200) }),
    })),
  },
  {
    name: "vectors of every agent are deleted",
    foundBy: "vectors/scope",
    handle: broken((facet) => ({
      forget: async (scope, options) => {
        for (const agentId of ["main", "other"])
          if (agentId !== scope.agentId) await facet.forget({ ...scope, namespace: "", agentId }, options);
        return facet.forget(scope, options);
      },
    })),
  },
  {
    name: "the key does not limit the nearest vectors",
    foundBy: "vectors/sessions",
    handle: broken((facet) => ({ nearest: ({ key: _key, ...query }) => facet.nearest(query) })),
  },
  {
    name: "archived sessions are among the active ones",
    foundBy: "vectors/sessions",
    handle: broken((facet) => ({ nearest: ({ state: _state, ...query }) => facet.nearest(query) })),
  },
  {
    name: "all models share one set of vectors",
    foundBy: "vectors/models",
    handle: broken((facet) => ({
      put: (ref, put) => facet.put(ref, { ...put, model: "any/any@40" }),
      nearest: (query) => facet.nearest({ ...query, model: "any/any@40" }),
      pending: (scope, query) => facet.pending(scope, { ...query, model: "any/any@40" }),
    })),
  },
  {
    name: "archived sessions are never pending",
    foundBy: "vectors/pending",
    handle: broken((facet) => ({
      pending: async (scope, query) => {
        const { ranges, ...rest } = await facet.pending(scope, query);
        return { ...rest, ranges: ranges.filter(({ ref }) => ref.archiveId === undefined) };
      },
    })),
  },
  {
    name: "only listed ranges count as pending",
    foundBy: "vectors/pending",
    handle: broken((facet) => ({
      pending: async (scope, query) => {
        const found = await facet.pending(scope, query);
        return { ...found, records: found.ranges.reduce((sum, { fromSeq, toSeq }) => sum + toSeq - fromSeq + 1, 0) };
      },
    })),
  },
  {
    name: "a session that grew is pending from its new record",
    foundBy: "vectors/grown",
    handle: broken((facet) => ({ put: (ref, put) => facet.put(ref, { ...put, resumeSeq: put.toSeq + 1 }) })),
  },
  {
    name: "a put without vectors covers nothing",
    foundBy: "vectors/empty-put",
    handle: broken((facet) => ({
      put: async (ref, put) => (put.vectors.length === 0 ? true : facet.put(ref, put)),
    })),
  },
  {
    name: "a redaction leaves the vectors",
    foundBy: "vectors/redacted",
    handle: (inner, world) => ({
      ...broken((facet) => ({
        put: (ref, put) => {
          puts(world).push({ ref, put });
          return facet.put(ref, put);
        },
      }))(inner, world),
      redact: async (ref, ids, options) => {
        const result = await inner.redact(ref, ids, options);
        for (const each of puts(world))
          if (inner.vectors !== undefined && each.ref.key === ref.key && each.put.vectors.length > 0)
            await putAgain(inner.vectors, ref, each.put);
        return result;
      },
    }),
  },
  {
    name: "a redaction of a text leaves the vectors",
    foundBy: "vectors/redacted-text",
    handle: (inner, world) => ({
      ...broken((facet) => ({
        put: (ref, put) => {
          puts(world).push({ ref, put });
          return facet.put(ref, put);
        },
      }))(inner, world),
      redact: async (ref, ids, options) => {
        const result = await inner.redact(ref, ids, options);
        for (const each of options.texts === undefined ? [] : puts(world))
          if (inner.vectors !== undefined) await putAgain(inner.vectors, ref, each.put);
        return result;
      },
    }),
  },
  {
    name: "a purge leaves the vectors to the next session of the key",
    foundBy: "vectors/purged",
    handle: (inner, world) => ({
      ...broken((facet) => ({
        put: (ref, put) => {
          puts(world).push({ ref, put });
          return facet.put(ref, put);
        },
      }))(inner, world),
      append: async (ref, drafts, options) => {
        const result = await inner.append(ref, drafts, options);
        const isNew = result.head.sessionId === "second";
        for (const each of isNew ? puts(world) : [])
          if (inner.vectors !== undefined && each.ref.key === ref.key)
            await putAgain(inner.vectors, ref, {
              ...each.put,
              toSeq: 1,
              resumeSeq: 1,
              vectors: each.put.vectors.slice(0, 1),
            });
        return result;
      },
    }),
  },
  {
    name: "a batch that was overtaken is put all the same",
    foundBy: "vectors/overtaken",
    handle: broken((facet) => ({
      put: async (ref, put, options) => (await facet.put(ref, put, options)) || putAgain(facet, ref, put),
    })),
  },
  {
    name: "a vector without finite numbers is kept as another one",
    foundBy: "vectors/invalid",
    handle: broken((facet) => ({
      put: (ref, put, options) =>
        facet.put(
          ref,
          {
            ...put,
            vectors: put.vectors.map((each) => ({
              ...each,
              vector: each.vector.map((value) => (Number.isFinite(value) ? value : 1)),
            })),
          },
          options,
        ),
    })),
  },
  {
    name: "the nearest vectors are remembered by each handle",
    foundBy: "vectors/another-handle",
    handle: broken((facet) => {
      const known = new Map<string, readonly NearestHit[]>();
      return {
        nearest: async (query) => {
          const { signal: _signal, vector, ...rest } = query;
          const name = JSON.stringify([rest, [...vector]]);
          const found = known.get(name) ?? (await facet.nearest(query));
          known.set(name, found);
          return found;
        },
      };
    }),
  },
];
