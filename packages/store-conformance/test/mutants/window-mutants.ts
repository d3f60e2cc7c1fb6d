import { setTimeout as wait } from "node:timers/promises";
import { loadExisting, type RecordWindow } from "@throughline/core/internal";
import { readWindow, type SessionRef, type SessionStore } from "@throughline/core";
import type { Mutant } from "./mutant.ts";

type Options = { readonly signal?: AbortSignal | undefined };

/** A store that reads windows by itself, wrongly. */
function windowing(
  read: (inner: SessionStore, ref: SessionRef, options: Options) => Promise<RecordWindow>,
): NonNullable<Mutant["handle"]> {
  return (inner) => ({ readWindow: (ref, options = {}) => read(inner, ref, options) });
}

async function recordsFrom(inner: SessionStore, ref: SessionRef, afterSeq: number): Promise<RecordWindow["records"]> {
  const records: RecordWindow["records"][number][] = [];
  for await (const page of inner.read(ref, { afterSeq })) records.push(...page.records);
  return records;
}

/** As core's, with what stands between the state and the records. */
function apart(between: () => Promise<unknown>): NonNullable<Mutant["handle"]> {
  return windowing(async (inner, ref) => {
    const state = await loadExisting(inner, ref);
    await between();
    return { state, records: await recordsFrom(inner, ref, (state.head.windowSeq ?? 1) - 1) };
  });
}

export const windowMutants: readonly Mutant[] = [
  {
    name: "a window begins behind its boundary",
    foundBy: "window/stated",
    handle: windowing(async (inner, ref, options) => {
      const window = await readWindow(inner, ref, options);
      return window.state.head.windowSeq === null ? window : { ...window, records: window.records.slice(1) };
    }),
  },
  {
    name: "a window without a boundary is the last record",
    foundBy: "window/whole",
    handle: windowing(async (inner, ref, options) => {
      const window = await readWindow(inner, ref, options);
      return window.state.head.windowSeq === null ? { ...window, records: window.records.slice(-1) } : window;
    }),
  },
  {
    name: "there is no window without records",
    foundBy: "window/empty",
    handle: windowing(async (inner, ref, options) => {
      const window = await readWindow(inner, ref, options);
      if (window.records.length === 0) throw new Error("nothing there");
      return window;
    }),
  },
  {
    name: "a window begins with the compaction",
    foundBy: "window/compacted",
    handle: windowing(async (inner, ref, options) => {
      const window = await readWindow(inner, ref, options);
      const at = window.records.findIndex(({ type }) => type === "compaction");
      return { ...window, records: window.records.slice(Math.max(at, 0)) };
    }),
  },
  {
    name: "a window begins with what its compaction keeps, whatever was set before",
    foundBy: "window/settings",
    handle: windowing(async (inner, ref, options) => {
      const { state, records } = await readWindow(inner, ref, options);
      const kept = records.find(({ type }) => type === "compaction")?.record["firstKeptEntryId"];
      return {
        state,
        records: records.slice(
          Math.max(
            0,
            records.findIndex(({ id }) => id === kept),
          ),
        ),
      };
    }),
  },
  {
    name: "a window ends with its first page",
    foundBy: "window/over-pages",
    handle: windowing(async (inner, ref, options) => {
      const { state, records } = await readWindow(inner, ref, options);
      return { state, records: records.slice(0, inner.capabilities.limits.pageRecords) };
    }),
  },
  {
    name: "the state of a window is newer than its records",
    foundBy: "window/one-moment",
    handle: windowing(async (inner, ref, options) => {
      const { records } = await readWindow(inner, ref, options);
      await wait(2);
      return { state: await loadExisting(inner, ref), records };
    }),
  },
  { name: "a window of two sessions", foundBy: "window/reset", handle: apart(() => wait(2)) },
  {
    name: "each page of a window is found by its key",
    foundBy: "window/reset-between-pages",
    handle: windowing(async (inner, ref, options) => {
      const { pageRecords } = inner.capabilities.limits;
      const window = await readWindow(inner, ref, options);
      const records = window.records.slice(0, pageRecords);
      await wait(2);
      const afterSeq = records.at(-1)?.seq ?? 0;
      return { ...window, records: [...records, ...(await recordsFrom(inner, ref, afterSeq))] };
    }),
  },
  {
    name: "the window of an archive is that of its key",
    foundBy: "window/archived",
    handle: windowing(async (inner, ref, options) => {
      const { archiveId: _archiveId, ...active } = ref;
      return readWindow(
        inner,
        (await inner.load(active)) === null ? { ...active, key: `${ref.key}x` } : active,
        options,
      );
    }),
  },
  {
    name: "the window of a fork is its own records alone",
    foundBy: "window/fork",
    handle: windowing(async (inner, ref, options) => {
      const window = await readWindow(inner, ref, options);
      const { forkedFrom } = window.state.entry as { readonly forkedFrom?: { readonly atSeq?: number | undefined } };
      const atSeq = forkedFrom?.atSeq ?? 0;
      return { ...window, records: window.records.filter(({ seq }) => seq > atSeq) };
    }),
  },
  {
    name: "a window of nothing is empty",
    foundBy: "window/missing",
    handle: windowing(async (inner, ref, options) => {
      if ((await inner.load(ref)) !== null) return readWindow(inner, ref, options);
      const head = { sessionId: "", lastSeq: 0, headId: null, windowSeq: null, fence: 0, turn: null };
      const times = { revision: 0, messageCount: 0, createdAtMs: 0, updatedAtMs: 0 };
      return { state: { ref, sessionId: "", archived: false, entry: { sessionId: "" }, head, ...times }, records: [] };
    }),
  },
  {
    name: "a window is read whatever its signal says",
    foundBy: "window/aborted",
    handle: windowing((inner, ref) => readWindow(inner, ref)),
  },
];
