import { hasErrorCode } from "@throughline/core";
import type { AppendResult, RecordPage, SessionStore } from "@throughline/core";
import type { Mutant } from "./mutant.ts";

export const optionMutants: readonly Mutant[] = [
  {
    name: "reads the options it knows and no others",
    foundBy: "options/wrong",
    handle: (inner) => ({
      remove: (ref, options) => inner.remove(ref, options?.purge === undefined ? {} : { purge: options.purge }),
    }),
  },
  {
    name: "takes any value for true",
    foundBy: "options/wrong",
    handle: (inner) => ({
      remove: (ref, options) =>
        inner.remove(ref, options?.purge === undefined ? options : { ...options, purge: Boolean(options.purge) }),
    }),
  },
  {
    name: "takes null for no options",
    foundBy: "options/no-object",
    handle: (inner) => ({ load: (ref, options) => inner.load(ref, options ?? {}) }),
  },
];

export const closedMutants: readonly Mutant[] = [
  {
    name: "answers from nothing after close",
    foundBy: "lifecycle/closed-everywhere",
    handle: (inner) => {
      const { fork } = inner;
      if (fork?.sharers === undefined) return {};
      const sharers: typeof fork.sharers = async (ref, seqs) => {
        try {
          return (await fork.sharers?.(ref, seqs)) ?? [];
        } catch (error) {
          if (hasErrorCode(error, "STORE_CLOSED")) return [];
          throw error;
        }
      };
      return { fork: { ...fork, sharers } };
    },
  },
  {
    name: "reads ahead of its caller",
    foundBy: "lifecycle/closed-between-pages",
    handle: (inner) => ({
      read: async function* (ref, options) {
        const pages: RecordPage[] = [];
        for await (const page of inner.read(ref, options)) pages.push(page as RecordPage);
        yield* pages;
      } as SessionStore["read"],
    }),
  },
  {
    name: "acknowledges what closing kept from being written",
    foundBy: "lifecycle/closed-in-the-middle",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        await Promise.resolve();
        try {
          return await inner.append(ref, drafts, options);
        } catch (error) {
          if (!hasErrorCode(error, "STORE_CLOSED")) throw error;
          return { records: [], replayed: false } as unknown as AppendResult;
        }
      },
    }),
  },
];
