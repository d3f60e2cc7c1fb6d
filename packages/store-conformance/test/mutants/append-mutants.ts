import { setTimeout as wait } from "node:timers/promises";
import { hasErrorCode, isSideRecord, ThroughlineError } from "@throughline/core";
import type { AppendDraft, RecordDraft, RecordHead, SessionStore } from "@throughline/core";
import { noted, readThrough, readWith, without, type Mutant } from "./mutant.ts";

function isDraft(draft: AppendDraft): draft is RecordDraft {
  return "type" in draft;
}

/** Records at the end that the mutant does not show yet. */
async function idsFrom(store: SessionStore, ref: Parameters<SessionStore["load"]>[0]): Promise<string[]> {
  const ids: string[] = [];
  for await (const { records } of store.read(ref, { payload: "head" })) ids.push(...records.map(({ id }) => id));
  return ids;
}

export const appendMutants: readonly Mutant[] = [
  {
    name: "drops the last record",
    foundBy: "append/keeps-every-record",
    handle: (inner) => ({ read: readThrough(inner, (page) => ({ ...page, records: page.records.filter(({ seq }) => seq < page.lastSeq) })) }),
  },
  {
    name: "acknowledges before the write",
    foundBy: "append/keeps-every-record",
    handle: (inner, world) => {
      const unwritten = noted(world, "unwritten", () => new Set<string>());
      return {
        append: async (ref, drafts, options) => {
          const result = await inner.append(ref, drafts, options);
          const ids = result.records.map(({ id }) => id);
          ids.forEach((id) => unwritten.add(id));
          void wait(2).then(() => ids.forEach((id) => unwritten.delete(id)));
          return result;
        },
        read: readThrough(inner, (page) => ({ ...page, records: page.records.filter(({ id }) => !unwritten.has(id)) })),
      };
    },
  },
  {
    name: "reorders",
    foundBy: "append/orders-records",
    handle: (inner) => ({ append: (ref, drafts, options) => inner.append(ref, drafts.every(isDraft) ? drafts.toReversed() : drafts, options) }),
  },
  {
    name: "orders by the writer's time",
    foundBy: "sequence/not-by-time",
    handle: (inner) => ({
      read: readThrough(inner, (page) => ({ ...page, records: page.records.toSorted((one, other) => (one.tsMs ?? 0) - (other.tsMs ?? 0)) })),
    }),
  },
  {
    name: "half a batch visible",
    foundBy: "gaps/whole-batches",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        if (drafts.length < 2 || options?.idempotencyKey !== undefined) return inner.append(ref, drafts, options);
        const half = Math.floor(drafts.length / 2);
        const first = await inner.append(ref, drafts.slice(0, half), options);
        await wait(1);
        const second = await inner.append(ref, drafts.slice(half), without(options, "expect", "turn", "entry"));
        return { ...second, records: [...first.records, ...second.records] };
      },
    }),
  },
  {
    name: "keeps what stood before a wrong record",
    foundBy: "append/all-or-nothing",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        try {
          return await inner.append(ref, drafts, options);
        } catch (error) {
          const index = ThroughlineError.isInstance(error) ? error.details["index"] : undefined;
          if (typeof index === "number" && index > 0) await inner.append(ref, drafts.slice(0, index), without(options, "idempotencyKey"));
          throw error;
        }
      },
    }),
  },
  {
    name: "a stale head in the result",
    foundBy: "append/result-is-the-truth",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const before = await inner.load(ref);
        const result = await inner.append(ref, drafts, options);
        return { ...result, head: before?.head ?? result.head };
      },
    }),
  },
  {
    name: "tells another seq than it reads",
    foundBy: "append/result-is-the-truth",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const result = await inner.append(ref, drafts, options);
        return { ...result, records: result.records.map((record) => ({ ...record, seq: record.seq - 1 })) };
      },
    }),
  },
  {
    name: "times in seconds",
    foundBy: "append/fills-in",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(ref, drafts.map((draft) => (isDraft(draft) && draft.timestamp === undefined ? { ...draft, timestamp: "2026-01-02T03:04:05Z" } : draft)), options),
    }),
  },
  {
    name: "one parent for the whole batch",
    foundBy: "append/links-records",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const headId = (await inner.load(ref))?.head.headId ?? null;
        return inner.append(ref, drafts.map((draft) => (isDraft(draft) && draft.parentId === undefined ? { ...draft, parentId: headId } : draft)), options);
      },
    }),
  },
  {
    name: "ids of its own",
    foundBy: "append/given-id",
    handle: (inner) => ({
      append: (ref, drafts, options) => inner.append(ref, drafts.map((draft) => (isDraft(draft) ? { ...draft, id: `own-${draft.id ?? Math.random()}` } : draft)), options),
    }),
  },
  {
    name: "takes an id twice",
    foundBy: "append/id-taken",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        try {
          return await inner.append(ref, drafts, options);
        } catch (error) {
          if (!hasErrorCode(error, "RECORD_ID_TAKEN")) throw error;
          return inner.append(ref, drafts.map((draft) => (isDraft(draft) ? { ...draft, id: `${draft.id}-${Math.random()}` } : draft)), options);
        }
      },
    }),
  },
  {
    name: "lets cycles through as its own errors",
    foundBy: "append/not-json",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        JSON.stringify(drafts);
        return inner.append(ref, drafts, options);
      },
    }),
  },
  {
    name: "overlooks reserved fields",
    foundBy: "append/reserved-fields",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(ref, drafts.map((draft) => {
          const { seq: _seq, _tl, ...rest } = draft as RecordDraft;
          return isDraft(draft) ? (rest as RecordDraft) : draft;
        }), options),
    }),
  },
  {
    name: "loses control characters",
    foundBy: "append/any-json",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(ref, drafts.map((draft) => (isDraft(draft) && draft["values"] !== undefined ? (JSON.parse(JSON.stringify(draft).replaceAll("\\u0000", "")) as RecordDraft) : draft)), options),
    }),
  },
  {
    name: "loses fields it does not know",
    foundBy: "append/unknown-fields",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(ref, drafts.map((draft) => {
          if (!isDraft(draft) || draft.type !== "someday") return draft;
          const { ["new"]: _new, ...known } = draft;
          return known as RecordDraft;
        }), options),
    }),
  },
  {
    name: "refuses an append without records",
    foundBy: "append/empty-batch",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        if (drafts.length === 0) throw new ThroughlineError("INPUT_INVALID", "There is nothing to append.", { outcome: "not-applied" });
        return inner.append(ref, drafts, options);
      },
    }),
  },
  {
    name: "one count for all sessions",
    foundBy: "sequence/per-session",
    handle: (inner, world) => {
      const seqs = noted(world, "seqs", () => new Map<string, number>());
      const of = (ref: { readonly key: string }, seq: number): number => seqs.get(`${ref.key} ${seq}`) ?? seq;
      return {
        append: async (ref, drafts, options) => {
          const result = await inner.append(ref, drafts, options);
          for (const { seq } of result.records) seqs.set(`${ref.key} ${seq}`, seqs.size + 1);
          return { ...result, records: result.records.map((record) => ({ ...record, seq: of(ref, record.seq) })) };
        },
        read: readThrough(inner, (page, ref) => ({ ...page, records: page.records.map((record) => ({ ...record, seq: of(ref, record.seq) })) })),
      };
    },
  },
  {
    name: "reuses seq after delete",
    foundBy: "sequence/not-reused",
    handle: (inner, world) => {
      const gone = noted(world, "gone", () => new Set<number>());
      const shift = <Head extends { readonly seq: number }>(record: Head): Head => ({ ...record, seq: record.seq - [...gone].filter((seq) => seq < record.seq).length });
      return {
        append: async (ref, drafts, options) => {
          const result = await inner.append(ref, drafts, options);
          return { ...result, records: result.records.map(shift) };
        },
        redact: async (ref, ids, options) => {
          const result = await inner.redact(ref, ids, options);
          const lastSeq = (await inner.load(ref))?.head.lastSeq;
          for (const seq of result.seqs) if (seq === lastSeq) gone.add(seq);
          return result;
        },
        read: readThrough(inner, (page) => ({ ...page, records: page.records.filter(({ seq }) => !gone.has(seq)).map(shift) })),
      };
    },
  },
  {
    name: "a refused append takes a seq",
    foundBy: "sequence/refused-takes-none",
    handle: (inner, world) => {
      const burnt = noted(world, "burnt", () => ({ count: 0 }));
      return {
        append: async (ref, drafts, options) => {
          try {
            const result = await inner.append(ref, drafts, options);
            return { ...result, records: result.records.map((record) => ({ ...record, seq: record.seq + burnt.count })) };
          } catch (error) {
            burnt.count++;
            throw error;
          }
        },
      };
    },
  },
  {
    name: "a gap visible to a reader",
    foundBy: "gaps/reader-beside-writer",
    handle: (inner, world) => {
      const flying = noted(world, "flying", () => new Set<string>());
      return {
        append: async (ref, drafts, options) => {
          const result = await inner.append(ref, drafts, options);
          const hidden = result.records.filter(({ seq }) => seq % 2 === 1).map(({ id }) => id);
          hidden.forEach((id) => flying.add(id));
          await wait(1);
          hidden.forEach((id) => flying.delete(id));
          return result;
        },
        read: readThrough(inner, (page) => ({ ...page, records: page.records.filter(({ id }) => !flying.has(id)) })),
      };
    },
  },
  {
    name: "ignores expect",
    foundBy: "expect/stale-head",
    handle: (inner) => ({ append: (ref, drafts, options) => inner.append(ref, drafts, without(options, "expect")) }),
  },
  {
    name: "takes an expected null for any head",
    foundBy: "expect/no-head",
    handle: (inner) => ({
      append: (ref, drafts, options) => inner.append(ref, drafts, options?.expect?.head === null ? without(options, "expect") : options),
    }),
  },
  {
    name: "refuses an expected null",
    foundBy: "expect/right-head",
    handle: (inner) => ({
      append: (ref, drafts, options) => inner.append(ref, drafts, options?.expect?.head === null ? { ...options, expect: { head: "null" } } : options),
    }),
  },
  {
    name: "compares expect with side records",
    foundBy: "expect/side-records",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const last = (await idsFrom(inner, ref)).at(-1) ?? null;
        if (options?.expect !== undefined && options.expect.head !== last) throw new ThroughlineError("APPEND_CONFLICT", "The last record is another.", { outcome: "not-applied" });
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
        return inner.append(ref, drafts.map((draft) => (isDraft(draft) && isSideRecord(draft) && draft.parentId === undefined ? { ...draft, parentId: headId } : draft)), options);
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
    handle: (inner) => ({ append: (ref, drafts, options) => inner.append(ref, drafts, without(options, "windowFromSeq")) }),
  },
  {
    name: "one huge page",
    foundBy: "paging/page-records",
    handle: (inner) => ({
      read: (async function* (ref, options = {}) {
        const records: RecordHead[] = [];
        let lastSeq = 0;
        for await (const page of inner.read(ref, options)) {
          records.push(...page.records);
          ({ lastSeq } = page);
        }
        if (records.length > 0) yield { records, lastSeq };
      } as SessionStore["read"]),
    }),
  },
  {
    name: "pages by count alone",
    foundBy: "paging/page-bytes",
    handle: (inner) => ({
      read: (async function* (ref, options = {}) {
        let records: RecordHead[] = [];
        let lastSeq = 0;
        for await (const page of inner.read(ref, options)) {
          ({ lastSeq } = page);
          for (const record of page.records) {
            records.push(record);
            if (records.length < inner.capabilities.limits.pageRecords) continue;
            yield { records, lastSeq };
            records = [];
          }
        }
        if (records.length > 0) yield { records, lastSeq };
      } as SessionStore["read"]),
    }),
  },
  {
    name: "afterSeq inclusive",
    foundBy: "paging/between",
    handle: (inner) => ({ read: readWith(inner, (options) => ({ ...options, afterSeq: Math.max(0, (options.afterSeq ?? 0) - 1) })) }),
  },
  {
    name: "beforeSeq inclusive",
    foundBy: "paging/between",
    handle: (inner) => ({ read: readWith(inner, (options) => (options.beforeSeq === undefined ? options : { ...options, beforeSeq: options.beforeSeq + 1 })) }),
  },
  {
    name: "the limit counts for each page",
    foundBy: "paging/limit",
    handle: (inner) => ({
      read: readThrough(
        { ...inner, read: readWith(inner, ({ limit: _limit, ...options }) => options) },
        (page, _ref, { limit = Infinity }) => ({ ...page, records: page.records.slice(0, Math.max(limit, 1)) }),
      ),
    }),
  },
  {
    name: "ignores the order",
    foundBy: "paging/descending",
    handle: (inner) => ({ read: readWith(inner, (options) => ({ ...options, order: "ascending" })) }),
  },
  {
    name: "descending turns each page around",
    foundBy: "paging/descending",
    handle: (inner) => ({
      read: readThrough(
        { ...inner, read: readWith(inner, (options) => ({ ...options, order: "ascending" })) },
        (page, _ref, { order }) => (order === "descending" ? { ...page, records: page.records.toReversed() } : page),
      ),
    }),
  },
  {
    name: "an empty page for an empty session",
    foundBy: "paging/nothing-to-read",
    handle: (inner) => ({
      read: (async function* (ref, options = {}) {
        let count = 0;
        for await (const page of inner.read(ref, options)) {
          count++;
          yield page;
        }
        if (count === 0) yield { records: [], lastSeq: 0 };
      } as SessionStore["read"]),
    }),
  },
  {
    name: "a page states its own last seq",
    foundBy: "paging/last-seq",
    handle: (inner) => ({ read: readThrough(inner, (page) => ({ ...page, lastSeq: Math.max(...page.records.map(({ seq }) => seq)) })) }),
  },
  {
    name: "counts pages from the end",
    foundBy: "paging/append-while-reading",
    handle: (inner) => ({
      read: (async function* (ref, options = {}) {
        let start: number | null = null;
        for await (const page of inner.read(ref, options)) {
          start ??= page.lastSeq;
          const moved = page.lastSeq - start;
          const records = moved === 0 ? page.records : page.records.slice(moved);
          if (records.length > 0) yield { ...page, records };
        }
      } as SessionStore["read"]),
    }),
  },
];
