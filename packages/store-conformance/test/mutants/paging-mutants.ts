import { hasErrorCode } from "@throughline/core";
import type { ReadOptions, RecordPage, SessionStore } from "@throughline/core";
import type { ReadPayload, RecordHead } from "@throughline/core/internal";
import { readThrough, readWith, type Mutant } from "./mutant.ts";

export const pagingMutants: readonly Mutant[] = [
  {
    name: "one huge page",
    foundBy: "paging/page-records",
    handle: (inner) => ({
      read: async function* (ref, options = {}) {
        const records: RecordHead[] = [];
        let lastSeq = 0;
        for await (const page of inner.read(ref, options)) {
          records.push(...page.records);
          ({ lastSeq } = page);
        }
        if (records.length > 0) yield { records, lastSeq };
      } as SessionStore["read"],
    }),
  },
  {
    name: "pages by count alone",
    foundBy: "paging/page-bytes",
    handle: (inner) => ({
      read: async function* (ref, options = {}) {
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
      } as SessionStore["read"],
    }),
  },
  {
    name: "afterSeq inclusive",
    foundBy: "paging/between",
    handle: (inner) => ({
      read: readWith(inner, (options) => ({ ...options, afterSeq: Math.max(0, (options.afterSeq ?? 0) - 1) })),
    }),
  },
  {
    name: "beforeSeq inclusive",
    foundBy: "paging/between",
    handle: (inner) => ({
      read: readWith(inner, (options) =>
        options.beforeSeq === undefined ? options : { ...options, beforeSeq: options.beforeSeq + 1 },
      ),
    }),
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
      read: async function* (ref, options = {}) {
        let count = 0;
        for await (const page of inner.read(ref, options)) {
          count++;
          yield page;
        }
        if (count === 0) yield { records: [], lastSeq: 0 };
      } as SessionStore["read"],
    }),
  },
  {
    name: "a page states its own last seq",
    foundBy: "paging/last-seq",
    handle: (inner) => ({
      read: readThrough(inner, (page) => ({ ...page, lastSeq: Math.max(...page.records.map(({ seq }) => seq)) })),
    }),
  },
  {
    name: "counts pages from the end",
    foundBy: "paging/append-while-reading",
    handle: (inner) => ({
      read: async function* (ref, options = {}) {
        let start: number | null = null;
        for await (const page of inner.read(ref, options)) {
          start ??= page.lastSeq;
          const moved = page.lastSeq - start;
          const records = moved === 0 ? page.records : page.records.slice(moved);
          if (records.length > 0) yield { ...page, records };
        }
      } as SessionStore["read"],
    }),
  },
  {
    name: "looks the key up for every page",
    foundBy: "paging/one-session",
    handle: (inner) => ({
      read: async function* (ref, options = {}) {
        let range: ReadOptions<ReadPayload> = options;
        for (;;) {
          let page: RecordPage<ReadPayload> | null = null;
          for await (page of inner.read(ref, range)) break;
          const last = page?.records.at(-1);
          if (page === null || last === undefined) return;
          yield page;
          const { limit = Infinity } = range;
          const behind = options.order === "descending" ? { beforeSeq: last.seq } : { afterSeq: last.seq };
          range = { ...range, ...behind, limit: limit - page.records.length };
          if (limit <= page.records.length) return;
        }
      } as SessionStore["read"],
    }),
  },
  {
    name: "a purge ends a read in silence",
    foundBy: "paging/purged-while-reading",
    handle: (inner) => ({
      read: async function* (ref, options = {}) {
        let count = 0;
        try {
          for await (const page of inner.read(ref, options)) {
            count++;
            yield page;
          }
        } catch (error) {
          if (count === 0 || !hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
        }
      } as SessionStore["read"],
    }),
  },
];
