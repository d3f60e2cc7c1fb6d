import type { AppendedRecord, RecordHead } from "@throughline/core/internal";
import type { AppendResult, SessionStore, StoredRecord } from "@throughline/core";
import { readThrough, type Mutant } from "./mutant.ts";

type BrokenHandle = NonNullable<Mutant["handle"]>;

/** An append whose records, where it is asked for them, go through `change`. */
function storing(
  change: (stored: readonly StoredRecord[], result: AppendResult, inner: SessionStore) => readonly StoredRecord[],
): BrokenHandle {
  return (inner) => ({
    append: async (ref, drafts, options) => {
      const result = await inner.append(ref, drafts, options);
      return result.stored === undefined ? result : { ...result, stored: change(result.stored, result, inner) };
    },
  });
}

const asHead = ({ seq, id, parentId, side, tsMs, storedAtMs }: AppendedRecord): object => {
  return { seq, id, parentId, side, tsMs, storedAtMs };
};

export const storedMutants: readonly Mutant[] = [
  {
    name: "records of an append without size and checksum",
    foundBy: "stored/as-read",
    handle: storing((stored) => stored.map((each) => ({ ...each, bytes: 0, crc: null }))),
  },
  {
    name: "places in the place of records",
    foundBy: "stored/as-read",
    handle: storing((_stored, { records }) => records.map((each) => asHead(each) as StoredRecord)),
  },
  {
    name: "records of an append share what the caller gave",
    foundBy: "stored/own",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const result = await inner.append(ref, drafts, options);
        if (result.stored === undefined) return result;
        const stored = result.stored.map((each, index) => ({
          ...each,
          record: { ...each.record, message: (drafts[index] as { message?: unknown }).message },
        }));
        return { ...result, stored };
      },
    }),
  },
  {
    name: "records of an append that nobody asked for",
    foundBy: "stored/not-asked",
    handle: (inner) => ({
      append: (ref, drafts, options) => inner.append(ref, drafts, { ...options, return: options?.return ?? "stored" }),
    }),
  },
  {
    name: "a repeated append gives no records",
    foundBy: "stored/replayed",
    handle: storing((stored, { replayed }) => (replayed ? [] : stored)),
  },
  {
    name: "an append without records gives none of their list",
    foundBy: "stored/none",
    handle: (inner) => ({
      append: async (ref, drafts, options) => {
        const { stored, ...result } = await inner.append(ref, drafts, options);
        return stored === undefined || stored.length === 0 ? result : { ...result, stored };
      },
    }),
  },
  {
    name: "takes any word for what an append is to give",
    foundBy: "stored/refused",
    handle: (inner) => ({
      append: (ref, drafts, { return: asked, ...options } = {}) =>
        inner.append(ref, drafts, asked === "stored" ? { ...options, return: asked } : options),
    }),
  },
];

/** A read of heads that go through `change`. */
function heading(change: (head: RecordHead, inner: SessionStore) => RecordHead): BrokenHandle {
  return (inner) => ({
    read: readThrough(inner, (page, _ref, { payload }) =>
      payload === "head" ? { ...page, records: page.records.map((head) => change(head, inner)) } : page,
    ),
  });
}

export const headMutants: readonly Mutant[] = [
  {
    name: "heads without a role",
    foundBy: "heads/role",
    handle: heading(({ role: _role, toolName: _toolName, ...head }) => head),
  },
  {
    name: "every head has the role of the message before",
    foundBy: "heads/odd",
    handle: (inner) => {
      let before: string | null = "user";
      return heading((head) => {
        before = head.role ?? before;
        return { ...head, role: before };
      })(inner, { handles: 1, notes: new Map() });
    },
  },
  {
    name: "the head of a tombstone keeps its tool",
    foundBy: "heads/redacted",
    handle: heading((head) => (head.type === "custom" && !head.side ? { ...head, toolName: "secret" } : head)),
  },
  {
    name: "heads say under a codec what is coded",
    foundBy: "heads/codec",
    handle: (inner) => ({
      read: readThrough(inner, async (page, ref, { payload }) => {
        if (payload !== "head") return page;
        const roles = new Map<number, string>();
        for await (const { records } of inner.read(ref))
          for (const { seq, record } of records)
            roles.set(seq, (record["message"] as { role?: string } | undefined)?.role ?? "");
        return { ...page, records: page.records.map((head) => ({ ...head, role: roles.get(head.seq) || null })) };
      }),
    }),
  },
];
