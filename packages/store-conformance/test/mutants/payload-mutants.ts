import { hasErrorCode } from "@throughline/core";
import { isSideRecord, throughlineKind } from "@throughline/core/internal";
import type {
  AppendDraft,
  AppendResult,
  RecordDraft,
  SessionRecord,
  SessionState,
  SessionStore,
} from "@throughline/core";
import type { RecordHead, SourcedDraft } from "@throughline/core/internal";
import { noted, readThrough, readWith, without, type Mutant } from "./mutant.ts";

function isSourced(draft: AppendDraft): draft is SourcedDraft {
  return "source" in draft && !("type" in draft);
}

type Sourced = RecordHead & { readonly source: string | Uint8Array; readonly record: SessionRecord };

/** Pages of payload `source` with every record changed. */
function withSources(inner: SessionStore, change: (record: Sourced) => object): SessionStore["read"] {
  return readThrough(inner, (page, _ref, { payload }) =>
    payload === "source"
      ? { ...page, records: page.records.map((record) => change(record as Sourced) as RecordHead) }
      : page,
  );
}

/** An append that comes through after all when it is refused as not valid. */
function takingInvalid(
  inner: SessionStore,
  repair: (draft: AppendDraft, index: number) => AppendDraft,
): Partial<SessionStore> {
  return {
    append: async (ref, drafts, options) => {
      try {
        return await inner.append(ref, drafts, options);
      } catch (error) {
        if (!hasErrorCode(error, "RECORD_INVALID") || !drafts.some(isSourced)) throw error;
        return inner.append(ref, drafts.map(repair), options);
      }
    },
  };
}

export const sourceMutants: readonly Mutant[] = [
  {
    name: "source re-serialized",
    foundBy: "sources/lines-kept",
    handle: (inner) => ({
      read: withSources(inner, (record) =>
        typeof record.source === "string" && record.source.startsWith("{") && !record.source.startsWith("{torn")
          ? { ...record, source: JSON.stringify(JSON.parse(record.source)) }
          : record,
      ),
    }),
  },
  {
    name: "non-UTF-8 mangled",
    foundBy: "sources/bytes-kept",
    handle: (inner) => ({
      read: withSources(inner, (record) => ({ ...record, source: Buffer.from(record.source).toString() })),
    }),
  },
  {
    name: "keeps the meaning and not the line",
    foundBy: "sources/with-record",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts.map((draft) => (isSourced(draft) ? (draft.record ?? draft) : draft)),
          options,
        ),
    }),
  },
  {
    name: "cuts a byte order mark off",
    foundBy: "sources/with-record",
    handle: (inner) => ({
      read: withSources(inner, (record) =>
        typeof record.source === "string" ? { ...record, source: record.source.replace(/^\ufeff/, "") } : record,
      ),
    }),
  },
  {
    name: "own records have no source",
    foundBy: "sources/own-records",
    handle: (inner) => ({ read: withSources(inner, (record) => ({ ...record, isSourceCanonical: false })) }),
  },
  {
    name: "takes two lines for one",
    foundBy: "sources/one-line",
    handle: (inner) =>
      takingInvalid(inner, (draft) =>
        isSourced(draft) && typeof draft.source === "string"
          ? { ...draft, source: draft.source.replaceAll("\n", " ").toWellFormed() }
          : draft,
      ),
  },
  {
    name: "makes up what a line does not state",
    foundBy: "sources/parts-stated",
    handle: (inner) =>
      takingInvalid(inner, (draft, index) =>
        isSourced(draft)
          ? {
              record: { type: "message", id: `made-${index}`, parentId: null, timestamp: "2026-01-02T03:04:05.006Z" },
              source: draft.source,
            }
          : draft,
      ),
  },
  {
    name: "copied records get new ids",
    foundBy: "sources/copied",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts.map((draft) =>
            isSourced(draft) &&
            draft.record === undefined &&
            typeof draft.source === "string" &&
            draft.source.includes('"own"')
              ? { source: draft.source, record: { ...(JSON.parse(draft.source) as RecordDraft), id: `${ref.key}-new` } }
              : draft,
          ),
          options,
        ),
    }),
  },
  {
    name: "heads carry the content",
    foundBy: "sources/head-payload",
    handle: (inner) => ({
      read: readWith(inner, (options) => (options.payload === "head" ? { ...options, payload: "record" } : options)),
    }),
  },
  {
    name: "bytes counted as characters",
    foundBy: "sources/head-payload",
    handle: (inner) => ({
      read: readThrough(inner, (page) => ({
        ...page,
        records: page.records.map((record) => ({ ...record, bytes: record.bytes - 2 })),
      })),
    }),
  },
  {
    name: "the checksum of something else",
    foundBy: "sources/checksum",
    handle: (inner) => ({
      read: readThrough(inner, (page) => ({
        ...page,
        records: page.records.map((record) => ({ ...record, crc: (record.crc ?? 0) ^ 1 })),
      })),
    }),
  },
];

/** Appends refused for their size or depth are cut up or down until they pass. */
function ignoringLimit(
  inner: SessionStore,
  code: "RECORD_TOO_LARGE" | "BATCH_TOO_LARGE" | "RECORD_INVALID",
  shrink: (draft: AppendDraft) => AppendDraft,
): Partial<SessionStore> {
  return {
    append: async (ref, drafts, options) => {
      try {
        return await inner.append(ref, drafts, options);
      } catch (error) {
        if (!hasErrorCode(error, code)) throw error;
        let result: AppendResult | null = null;
        for (const draft of drafts) result = await inner.append(ref, [shrink(draft)], options);
        if (result === null) throw error;
        return result;
      }
    },
  };
}

export const limitMutants: readonly Mutant[] = [
  {
    name: "refuses the largest record",
    foundBy: "limits/largest-record",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts.map((draft) =>
            isSourced(draft) && draft.source.length === inner.capabilities.limits.recordBytes
              ? { source: `${String(draft.source)} ` }
              : draft,
          ),
          options,
        ),
    }),
  },
  {
    name: "ignores the limit of a record",
    foundBy: "limits/record-too-large",
    handle: (inner) =>
      ignoringLimit(inner, "RECORD_TOO_LARGE", (draft) =>
        isSourced(draft) ? { source: String(draft.source).replace("xxxx", "") } : draft,
      ),
  },
  {
    name: "takes what is nested too deep",
    foundBy: "limits/nesting",
    handle: (inner) =>
      ignoringLimit(inner, "RECORD_INVALID", (draft) => ("deep" in draft ? { ...draft, deep: "taken" } : draft)),
  },
  {
    name: "ignores the limits of a batch",
    foundBy: "limits/batch-records",
    handle: (inner) => ignoringLimit(inner, "BATCH_TOO_LARGE", (draft) => draft),
  },
  {
    name: "ignores the bytes of a batch",
    foundBy: "limits/batch-bytes",
    handle: (inner) => {
      const relaxed = ignoringLimit(inner, "BATCH_TOO_LARGE", (draft) => draft).append ?? inner.append;
      return {
        append: (ref, drafts, options) =>
          (drafts.length > inner.capabilities.limits.batchRecords ? inner : { append: relaxed }).append(
            ref,
            drafts,
            options,
          ),
      };
    },
  },
];

/** A handle that gives the same object again for the same question, as a cache without copies does. */
function remembering(inner: SessionStore): Partial<SessionStore> {
  const pages = new Map<string, object>();
  return {
    read: readThrough(inner, (page, ref, options) => {
      const { signal: _signal, ...rest } = options;
      const question = JSON.stringify([ref, rest, page.records.map(({ id, bytes, crc }) => [id, bytes, crc])]);
      if (!pages.has(question)) pages.set(question, page);
      return pages.get(question) as typeof page;
    }),
  };
}

export const copyMutants: readonly Mutant[] = [
  { name: "hands out its own object", foundBy: "copies/records-read", handle: remembering },
  { name: "hands out its own bytes", foundBy: "copies/bytes-read", handle: remembering },
  {
    name: "keeps the caller's drafts",
    foundBy: "copies/drafts",
    handle: (inner, world) => {
      const drafts = noted(world, "drafts", () => new Map<string, RecordDraft>());
      return {
        append: async (ref, given, options) => {
          const result = await inner.append(ref, given, options);
          result.records.forEach(({ id }, index) => {
            const draft = given[index];
            if (draft !== undefined && !isSourced(draft) && options === undefined) drafts.set(id, draft);
          });
          return result;
        },
        read: readThrough(inner, (page) => ({
          ...page,
          records: page.records.map((record) => {
            const draft = drafts.get(record.id);
            const own = (record as { readonly record?: SessionRecord }).record;
            return draft === undefined || own === undefined || throughlineKind(own) === "redaction" || isSideRecord(own)
              ? record
              : { ...record, record: { ...own, message: draft["message"] } };
          }),
        })),
      };
    },
  },
  {
    name: "hands out its own state",
    foundBy: "copies/states",
    handle: (inner) => {
      const states = new Map<string, SessionState>();
      const same = (state: SessionState): SessionState => {
        const question = JSON.stringify(state);
        if (!states.has(question)) states.set(question, state);
        return states.get(question) ?? state;
      };
      return {
        load: async (ref, options) => {
          const state = await inner.load(ref, options);
          return state === null ? null : same(state);
        },
      };
    },
  },
  {
    name: "keeps the caller's entry",
    foundBy: "copies/entries-given",
    handle: (inner) => {
      const entries = new Map<string, SessionState["entry"]>();
      return {
        save: async (ref, entry, options) => {
          const state = await inner.save(ref, entry, options);
          entries.set(`${state.sessionId} ${state.revision}`, entry);
          return state;
        },
        append: async (ref, drafts, options) => {
          const before = await inner.load(ref).catch(() => null);
          const result = await inner.append(ref, drafts, options);
          const entry = entries.get(`${before?.sessionId} ${before?.revision}`);
          if (entry !== undefined && options?.entry !== undefined)
            entries.set(`${before?.sessionId} ${result.revision}`, { ...entry, ...options.entry });
          return result;
        },
        load: async (ref, options) => {
          const state = await inner.load(ref, options);
          const entry = entries.get(`${state?.sessionId} ${state?.revision}`);
          return state === null || entry === undefined ? state : { ...state, entry };
        },
      };
    },
  },
  {
    name: "replays the result it handed out",
    foundBy: "copies/results",
    handle: (inner, world) => {
      const results = noted(world, "results", () => new Map<string, AppendResult>());
      return {
        append: async (ref, drafts, options) => {
          const result = await inner.append(ref, drafts, options);
          const key = `${JSON.stringify(ref)} ${options?.idempotencyKey}`;
          if (options?.idempotencyKey !== undefined && !results.has(key)) results.set(key, result);
          return result.replayed ? { ...(results.get(key) ?? result), replayed: true } : result;
        },
      };
    },
  },
  {
    name: "forgets a rewind beside a patch",
    foundBy: "model/random-histories",
    handle: (inner) => ({
      // Right in every small case: wrong only for a patch together with a rewind.
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts,
          options?.entry !== undefined && options.rewindTo != null ? without(options, "rewindTo") : options,
        ),
    }),
  },
];
