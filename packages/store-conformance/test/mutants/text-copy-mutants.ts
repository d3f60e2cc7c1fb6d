import type { RedactOptions, RedactResult, SessionRef, SessionStore } from "@throughline/core";
import type { Mutant } from "./mutant.ts";

type Redact = (ref: SessionRef, ids: readonly string[], options: RedactOptions) => Promise<RedactResult>;

function redacting(change: (inner: SessionStore) => Redact): NonNullable<Mutant["handle"]> {
  return (inner) => ({ redact: change(inner) });
}

export const textCopyMutants: readonly Mutant[] = [
  {
    name: "redacts the first of several records",
    foundBy: "text-copies/checkpoint",
    handle: redacting((inner) => (ref, ids, options) => inner.redact(ref, ids.slice(0, 1), options)),
  },
  {
    name: "redacts main records only when there are several",
    foundBy: "text-copies/approval",
    handle: redacting((inner) => async (ref, ids, options) => {
      const sides = new Set<string>();
      for await (const { records } of inner.read(ref)) for (const { id, side } of records) if (side) sides.add(id);
      return inner.redact(ref, ids.length === 1 ? ids : ids.filter((id) => !sides.has(id)), options);
    }),
  },
  {
    name: "redacts nothing that stands before the record that was asked for",
    foundBy: "text-copies/unit",
    handle: redacting((inner) => async (ref, ids, options) => {
      const seqs = new Map<string, number>();
      for await (const { records } of inner.read(ref)) for (const { id, seq } of records) seqs.set(id, seq);
      const first = seqs.get(ids[0] ?? "") ?? 0;
      return inner.redact(
        ref,
        ids.filter((id) => (seqs.get(id) ?? Infinity) >= first),
        options,
      );
    }),
  },
  {
    name: "takes ids that end alike for one unit",
    foundBy: "text-copies/no-unit",
    handle: redacting(
      (inner) => (ref, ids, options) =>
        inner.redact(ref, [...new Set(ids.flatMap((id) => [id, id.replace(/~d\d+$/, "")]))], options),
    ),
  },
  {
    name: "a redaction leaves the entry as it is",
    foundBy: "text-copies/title",
    handle: redacting(
      (inner) =>
        (ref, ids, { reason }) =>
          inner.redact(ref, ids, { reason }),
    ),
  },
  {
    name: "a redaction leaves the entries of forks as they are",
    foundBy: "text-copies/title-of-forks",
    handle: redacting((inner) => async (ref, ids, options) => {
      const { sessions } = await inner.list({ namespace: ref.namespace });
      const result = await inner.redact(ref, ids, options);
      for (const { ref: other, entry } of sessions) {
        const now = other.key === ref.key ? null : await inner.load(other);
        if (now !== null) await inner.save(other, entry, { ifRevision: now.revision });
      }
      return result;
    }),
  },
  {
    name: "every redaction changes the entry",
    foundBy: "text-copies/no-title",
    handle: redacting((inner) => async (ref, ids, options) => {
      const result = await inner.redact(ref, ids, options);
      const state = await inner.load(ref);
      if (state !== null && !state.archived) await inner.save(ref, state.entry, { ifRevision: state.revision });
      return result;
    }),
  },
  {
    name: "a redaction that would take the sessionId takes the others",
    foundBy: "text-copies/fields-refused",
    handle: redacting(
      (inner) =>
        (ref, ids, { reason, entryFields = [] }) =>
          inner.redact(ref, ids, { reason, entryFields: entryFields.filter((field) => field !== "sessionId") }),
    ),
  },
  {
    name: "redacts whole records where texts are named",
    foundBy: "redacted-texts/inside",
    handle: redacting(
      (inner) =>
        (ref, ids, { texts: _texts, ...options }) =>
          inner.redact(ref, ids, options),
    ),
  },
  {
    name: "leaves records alone whose line alone holds a text",
    foundBy: "redacted-texts/lines",
    handle: redacting((inner) => async (ref, ids, options) => {
      const inRecord = new Set<string>();
      for await (const { records } of inner.read(ref, {}))
        for (const { id, record } of records)
          if (options.texts?.some((text) => JSON.stringify(record).includes(text)) !== false) inRecord.add(id);
      return inner.redact(
        ref,
        ids.filter((id) => inRecord.has(id)),
        options,
      );
    }),
  },
  {
    name: "accepts an empty text among those to redact",
    foundBy: "redacted-texts/empty",
    handle: redacting(
      (inner) => (ref, ids, options) =>
        inner.redact(ref, ids, {
          ...options,
          ...(options.texts === undefined ? {} : { texts: options.texts.filter((text) => text !== "") }),
        }),
    ),
  },
];
