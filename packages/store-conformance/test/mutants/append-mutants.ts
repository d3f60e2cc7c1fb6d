import { setTimeout as wait } from "node:timers/promises";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import type { AppendDraft, RecordDraft } from "@throughline/core";
import { noted, readThrough, without, type Mutant } from "./mutant.ts";

function isDraft(draft: AppendDraft): draft is RecordDraft {
  return "type" in draft;
}

export const appendMutants: readonly Mutant[] = [
  {
    name: "drops the last record",
    foundBy: "append/keeps-every-record",
    handle: (inner) => ({
      read: readThrough(inner, (page) => ({ ...page, records: page.records.filter(({ seq }) => seq < page.lastSeq) })),
    }),
  },
  {
    name: "takes a message that no context shows",
    foundBy: "append/refuses-what-no-context-shows",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts.map((draft) =>
            isDraft(draft) && JSON.stringify(draft).includes("contnt") ? { ...draft, type: "kept" } : draft,
          ),
          options,
        ),
    }),
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
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(ref, drafts.every(isDraft) ? drafts.toReversed() : drafts, options),
    }),
  },
  {
    name: "orders by the writer's time",
    foundBy: "sequence/not-by-time",
    handle: (inner) => ({
      read: readThrough(inner, (page) => ({
        ...page,
        records: page.records.toSorted((one, other) => (one.tsMs ?? 0) - (other.tsMs ?? 0)),
      })),
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
          if (typeof index === "number" && index > 0)
            await inner.append(ref, drafts.slice(0, index), without(options, "idempotencyKey"));
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
        inner.append(
          ref,
          drafts.map((draft) =>
            isDraft(draft) && draft.timestamp === undefined ? { ...draft, timestamp: "2026-01-02T03:04:05Z" } : draft,
          ),
          options,
        ),
    }),
  },
  {
    name: "one parent for the whole batch",
    foundBy: "append/links-records",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const headId = (await inner.load(ref))?.head.headId ?? null;
        return inner.append(
          ref,
          drafts.map((draft) =>
            isDraft(draft) && draft.parentId === undefined ? { ...draft, parentId: headId } : draft,
          ),
          options,
        );
      },
    }),
  },
  {
    name: "ids of its own",
    foundBy: "append/given-id",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts.map((draft) => (isDraft(draft) ? { ...draft, id: `own-${draft.id ?? Math.random()}` } : draft)),
          options,
        ),
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
          return inner.append(
            ref,
            drafts.map((draft) => (isDraft(draft) ? { ...draft, id: `${draft.id}-${Math.random()}` } : draft)),
            options,
          );
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
        inner.append(
          ref,
          drafts.map((draft) => {
            const { seq: _seq, _tl, ...rest } = draft as RecordDraft;
            return isDraft(draft) ? (rest as RecordDraft) : draft;
          }),
          options,
        ),
    }),
  },
  {
    name: "loses control characters",
    foundBy: "append/any-json",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts.map((draft) =>
            isDraft(draft) && draft["values"] !== undefined
              ? (JSON.parse(JSON.stringify(draft).replaceAll("\\u0000", "")) as RecordDraft)
              : draft,
          ),
          options,
        ),
    }),
  },
  {
    name: "loses fields it does not know",
    foundBy: "append/unknown-fields",
    handle: (inner) => ({
      append: (ref, drafts, options) =>
        inner.append(
          ref,
          drafts.map((draft) => {
            if (!isDraft(draft) || draft.type !== "someday") return draft;
            const { ["new"]: _new, ...known } = draft;
            return known as RecordDraft;
          }),
          options,
        ),
    }),
  },
  {
    name: "writes the fields in the order of an object",
    foundBy: "append/four-fields-first",
    handle: (inner) => ({
      read: readThrough(inner, (page, _ref, { payload }) => ({
        ...page,
        records: page.records.map((stored) =>
          payload === "source" && "record" in stored && JSON.stringify(stored.record).startsWith('{"0"')
            ? { ...stored, source: JSON.stringify(stored.record) }
            : stored,
        ),
      })),
    }),
  },
  {
    name: "refuses an append without records",
    foundBy: "append/empty-batch",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        if (drafts.length === 0)
          throw new ThroughlineError("INPUT_INVALID", "There is nothing to append.", { outcome: "not-applied" });
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
        read: readThrough(inner, (page, ref) => ({
          ...page,
          records: page.records.map((record) => ({ ...record, seq: of(ref, record.seq) })),
        })),
      };
    },
  },
  {
    name: "reuses seq after delete",
    foundBy: "sequence/not-reused",
    handle: (inner, world) => {
      const gone = noted(world, "gone", () => new Set<number>());
      const shift = <Head extends { readonly seq: number }>(record: Head): Head => ({
        ...record,
        seq: record.seq - [...gone].filter((seq) => seq < record.seq).length,
      });
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
        read: readThrough(inner, (page) => ({
          ...page,
          records: page.records.filter(({ seq }) => !gone.has(seq)).map(shift),
        })),
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
            return {
              ...result,
              records: result.records.map((record) => ({ ...record, seq: record.seq + burnt.count })),
            };
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
];
