import { setTimeout as wait } from "node:timers/promises";
import { isSideRecord } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import type { AppendDraft, RecordDraft, SessionStore } from "@throughline/core";
import { without, type Mutant } from "./mutant.ts";

function isDraft(draft: AppendDraft): draft is RecordDraft {
  return "type" in draft;
}

/** Records at the end that the mutant does not show yet. */
async function idsFrom(store: SessionStore, ref: Parameters<SessionStore["load"]>[0]): Promise<string[]> {
  const ids: string[] = [];
  for await (const { records } of store.read(ref, { payload: "head" })) ids.push(...records.map(({ id }) => id));
  return ids;
}

export const headMutants: readonly Mutant[] = [
  {
    name: "ignores expect",
    foundBy: "expect/stale-head",
    handle: (inner) => ({ append: (ref, drafts, options) => inner.append(ref, drafts, without(options, "expect")) }),
  },
  {
    name: "takes an expected null for any head",
    foundBy: "expect/no-head",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(ref, drafts, options?.expect?.head === null ? without(options, "expect") : options),
    }),
  },
  {
    name: "refuses an expected null",
    foundBy: "expect/right-head",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(ref, drafts, options?.expect?.head === null ? { ...options, expect: { head: "null" } } : options),
    }),
  },
  {
    name: "compares expect with side records",
    foundBy: "expect/side-records",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const last = (await idsFrom(inner, ref)).at(-1) ?? null;
        if (options?.expect !== undefined && options.expect.head !== last)
          throw new ThroughlineError("APPEND_CONFLICT", "The last record is another.", { outcome: "not-applied" });
        return inner.append(ref, drafts, without(options, "expect"));
      },
    }),
  },
  {
    name: "compares expect before it waits to write",
    foundBy: "expect/one-wins",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        if (options?.expect === undefined) return inner.append(ref, drafts, options);
        const state = await inner.load(ref);
        if (state !== null && state.head.headId !== options.expect.head) return inner.append(ref, drafts, options);
        await wait(1);
        return inner.append(ref, drafts, without(options, "expect"));
      },
    }),
  },
  {
    name: "side records move the head",
    foundBy: "sides/head-stays",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const result = await inner.append(ref, drafts, options);
        const last = result.records.at(-1);
        if (last?.side === true && options?.rewindTo === undefined) await inner.append(ref, [], { rewindTo: last.id });
        return last?.side === true ? { ...result, head: { ...result.head, headId: last.id } } : result;
      },
    }),
  },
  {
    name: "side records hang on the head before the batch",
    foundBy: "sides/mixed-batch",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const headId = (await inner.load(ref))?.head.headId ?? null;
        return inner.append(
          ref,
          drafts.map((draft) =>
            isDraft(draft) && isSideRecord(draft) && draft.parentId === undefined
              ? { ...draft, parentId: headId }
              : draft,
          ),
          options,
        );
      },
    }),
  },
  {
    name: "ignores a rewind",
    foundBy: "sides/rewind",
    handle: (inner) => ({ append: (ref, drafts, options) => inner.append(ref, drafts, without(options, "rewindTo")) }),
  },
  {
    name: "counts every record as a message",
    foundBy: "sides/message-count",
    handle: (inner) => ({
      load: async (ref, options) => {
        const state = await inner.load(ref, options);
        return state === null ? null : { ...state, messageCount: state.head.lastSeq };
      },
    }),
  },
  {
    name: "loses the window",
    foundBy: "sides/window",
    handle: (inner) => ({
      append: (ref, drafts, options) => inner.append(ref, drafts, without(options, "windowFromSeq")),
    }),
  },
];
