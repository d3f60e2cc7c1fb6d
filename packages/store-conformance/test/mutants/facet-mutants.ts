import type { ForkFacet, RecordPage, SessionStore, WatchFacet } from "@throughline/core";
import { noted, type Mutant } from "./mutant.ts";

type BrokenHandle = NonNullable<Mutant["handle"]>;
type Fork = ForkFacet["fork"];

function forking(change: (fork: Fork, inner: SessionStore) => Fork): BrokenHandle {
  return (inner) => {
    const facet = inner.fork as ForkFacet;
    return { fork: { ...facet, fork: change((ref, target, options) => facet.fork(ref, target, options), inner) } };
  };
}

type Sharers = NonNullable<ForkFacet["sharers"]>;

function sharing(change: (sharers: Sharers) => Sharers): BrokenHandle {
  return (inner) => {
    const facet = inner.fork as ForkFacet & { readonly sharers: Sharers };
    return { fork: { ...facet, sharers: change((ref, seqs) => facet.sharers(ref, seqs)) } };
  };
}

export const forkMutants: readonly Mutant[] = [
  {
    name: "fork forgets whence",
    foundBy: "fork/shares",
    handle: forking((fork) => async (ref, target, options) => {
      const state = await fork(ref, target, options);
      return { ...state, entry: { sessionId: state.sessionId } };
    }),
  },
  {
    name: "fork stays where it is without a word",
    foundBy: "fork/elsewhere",
    handle: forking((fork) => (ref, target, options) => {
      const { namespace, agentId } = ref;
      return fork(ref, { ...target, namespace, agentId }, options);
    }),
  },
  {
    name: "fork takes everything",
    foundBy: "fork/at-seq",
    handle: forking(
      (fork) =>
        (ref, target, { sessionId }) =>
          fork(ref, target, { sessionId }),
    ),
  },
  {
    name: "fork is another name for its origin",
    foundBy: "fork/apart",
    handle: (inner, world) => {
      const aliases = noted(world, "aliases", () => new Map<string, string>());
      return {
        ...forking((fork) => async (ref, target, options) => {
          const state = await fork(ref, target, options);
          aliases.set(target.key, ref.key);
          return state;
        })(inner, world),
        append: (ref, drafts, options) =>
          inner.append({ ...ref, key: aliases.get(ref.key) ?? ref.key }, drafts, options),
      };
    },
  },
  {
    name: "fork gives its records new ids",
    foundBy: "fork/ids",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts.map((draft) => {
            if (!("id" in draft) || ref.key.endsWith("a")) return draft;
            const { id: _id, ...rest } = draft;
            return rest as typeof draft;
          }),
          options,
        ),
    }),
  },
  {
    name: "fork of a fork shares the first origin only",
    foundBy: "fork/of-fork",
    handle: forking(
      (fork) => async (ref, target, options) =>
        ref.key.endsWith("b")
          ? fork({ ...ref, key: ref.key.replace(/b$/, "a") }, target, options)
          : fork(ref, target, options),
    ),
  },
  {
    name: "fork makes a missing origin",
    foundBy: "fork/refused",
    handle: forking((fork, inner) => async (ref, target, options) => {
      if ((await inner.load(ref)) === null) await inner.save(ref, { sessionId: "made" }, { ifRevision: null });
      return fork(ref, target, options);
    }),
  },
  {
    name: "purging an origin takes its forks along",
    foundBy: "fork/origin-purged",
    handle: (inner) => ({
      remove: async (ref, options) => {
        const { sessions } = await inner.list({ namespace: ref.namespace });
        const origin = (await inner.load(ref))?.sessionId;
        await inner.remove(ref, options);
        for (const session of sessions) {
          const from = session.entry["forkedFrom"] as { readonly sessionId?: string } | undefined;
          if (from?.sessionId === origin && options?.purge === true) await inner.remove(session.ref, options);
        }
      },
    }),
  },
  {
    name: "a fork redacts nothing of what it shares",
    foundBy: "fork/redacted",
    handle: (inner) => ({
      redact: async (ref, ids, options) => {
        const isFork = (await inner.load(ref))?.entry["forkedFrom"] !== undefined;
        return inner.redact(ref, isFork ? [] : ids, options);
      },
    }),
  },
  {
    name: "names no archived session among those that share",
    foundBy: "fork/sharers",
    handle: sharing(
      (sharers) => async (ref, seqs) =>
        (await sharers(ref, seqs)).filter(({ ref: { archiveId } }) => archiveId === undefined),
    ),
  },
  {
    name: "says that all is shared of which some is",
    foundBy: "fork/sharers",
    handle: sharing((sharers) => async (ref, seqs) => (await sharers(ref, seqs)).map((each) => ({ ...each, seqs }))),
  },
  {
    name: "purging a fork redacts what it shared",
    foundBy: "fork/purged",
    handle: (inner) => ({
      remove: async (ref, options) => {
        const ids: string[] = [];
        for await (const { records } of inner.read(ref)) ids.push(...records.map(({ id }) => id));
        const state = await inner.load(ref);
        if (state?.entry["forkedFrom"] !== undefined && ids.length > 2)
          await inner.redact(ref, ids.slice(0, 1), { reason: "x" });
        await inner.remove(ref, options);
      },
    }),
  },
];

function watched(change: (pages: AsyncIterable<RecordPage>) => AsyncGenerator<RecordPage>): BrokenHandle {
  return (inner) => {
    const facet = inner.watch as WatchFacet;
    return { watch: { watch: (ref, options) => change(facet.watch(ref, options)) } };
  };
}

export const watchMutants: readonly Mutant[] = [
  {
    name: "watch gives a page twice",
    foundBy: "watch/follows",
    handle: watched(async function* (pages) {
      for await (const page of pages) {
        yield page;
        yield page;
      }
    }),
  },
  {
    name: "watch begins at the beginning",
    foundBy: "watch/after-seq",
    handle: (inner) => {
      const facet = inner.watch as WatchFacet;
      return { watch: { watch: (ref, options) => facet.watch(ref, { ...options, afterSeq: 0 }) } };
    },
  },
  {
    name: "watch ends with the first page",
    foundBy: "watch/other-handle",
    handle: watched(async function* (pages) {
      for await (const page of pages) {
        yield page;
        return;
      }
    }),
  },
  {
    name: "watch goes on with the next session of the key",
    foundBy: "watch/one-session",
    handle: (inner) => ({
      watch: {
        watch: async function* (ref, { afterSeq, signal }) {
          for (let seq = afterSeq; !signal.aborted;) {
            for await (const page of inner.read(ref, { afterSeq: seq })) {
              yield page;
              seq = page.records.at(-1)?.seq ?? seq;
            }
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
        },
      },
    }),
  },
  {
    name: "watch waits for a session to come",
    foundBy: "watch/missing",
    handle: (inner) => {
      const facet = inner.watch as WatchFacet;
      return {
        watch: {
          watch: async function* (ref, options) {
            if ((await inner.load(ref)) !== null) yield* facet.watch(ref, options);
          },
        },
      };
    },
  },
];
