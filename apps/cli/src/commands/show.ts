import { loadExisting, readWindow } from "@throughline/core";
import type { SessionStore, StoredRecord } from "@throughline/core";
import { systemClock } from "@throughline/core/node";
import type { CommandContext, CommandInput } from "../command.ts";
import { messageRole, recordRole, recordText } from "../record-text.ts";
import { resolveSession } from "../resolve-session.ts";
import { selectRecords } from "../select-records.ts";
import type { RecordSelection } from "../select-records.ts";
import { jsonLine } from "../terminal-safe.ts";
import { timeText } from "../time-text.ts";

interface ShowOptions {
  readonly tail?: number;
  readonly afterSeq?: number;
  readonly role?: string;
  readonly follow?: boolean;
  readonly all?: boolean;
  readonly allBranches?: boolean;
  readonly raw?: boolean;
}

type SessionRefOf = Awaited<ReturnType<typeof resolveSession>>["ref"];

const pollMs = 250;
/** On a terminal a longer record is cut, and the cut is said. */
const shownCharacters = 4000;

/** Shows a session's records: the branch as it stands, for people or as JSON. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ShowOptions;
  const { output, scope, signal } = context;
  const store = await context.openStore("read");
  const { ref } = await resolveSession(store, input.arguments[0] ?? "", scope, { signal });
  const selection: RecordSelection = {
    isAll: options.all === true,
    isAllBranches: options.allBranches === true,
    afterSeq: options.afterSeq ?? 0,
    role: options.role ?? null,
    tail: options.tail ?? null,
  };
  const { records, headId, lastSeq } = await readRecords(store, ref, selection, signal);
  const chosen = selectRecords(records, headId, selection, (stored) => messageRole(stored.record));
  for (const stored of chosen) await showRecord(context, stored, options.raw === true);
  if (options.follow === true) {
    await output.flush();
    await follow(
      context,
      store,
      ref,
      { ...selection, afterSeq: Math.max(lastSeq, selection.afterSeq) },
      options.raw === true,
    );
  } else if (output.isJson) await output.end(chosen.length);
  return 0;
}

async function readRecords(
  store: SessionStore,
  ref: SessionRefOf,
  selection: RecordSelection,
  signal: AbortSignal,
): Promise<{ readonly records: readonly StoredRecord[]; readonly headId: string | null; readonly lastSeq: number }> {
  if (!selection.isAll && !selection.isAllBranches) {
    const { state, records } = await readWindow(store, ref, { signal });
    return { records, headId: state.head.headId, lastSeq: state.head.lastSeq };
  }
  const state = await loadExisting(store, ref);
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref, { signal })) records.push(...page.records);
  return { records, headId: state.head.headId, lastSeq: Math.max(state.head.lastSeq, records.at(-1)?.seq ?? 0) };
}

/** Shows what is appended, until interrupted. Records of other branches only when all were asked for. */
async function follow(
  { output, signal, ...context }: CommandContext,
  store: SessionStore,
  ref: SessionRefOf,
  selection: RecordSelection,
  isRaw: boolean,
): Promise<void> {
  let { afterSeq } = selection;
  while (!signal.aborted) {
    const state = await store.load(ref, { signal });
    if (state !== null && state.head.lastSeq > afterSeq) {
      for await (const { records } of store.read(ref, { afterSeq, signal })) {
        for (const stored of records) {
          afterSeq = stored.seq;
          const isWanted = selection.role === null || messageRole(stored.record) === selection.role;
          if (isWanted && (selection.isAllBranches || !stored.side))
            await showRecord({ output, signal, ...context }, stored, isRaw);
        }
      }
      await output.flush();
    }
    await systemClock.sleep(pollMs, signal);
  }
}

async function showRecord({ output }: CommandContext, stored: StoredRecord, isRaw: boolean): Promise<void> {
  if (output.isJson) {
    const { seq, id, parentId, type, side, tsMs, record } = stored;
    await output.object({ kind: "record", seq, id, parentId, type, side, tsMs, record });
    return;
  }
  if (isRaw) {
    await output.line(jsonLine(stored.record));
    return;
  }
  const text = recordText(stored.record);
  const isCut = output.isTerminal && text.length > shownCharacters;
  await output.line(
    { text: `#${stored.seq} ${recordRole(stored.record)}`, style: "cyan" },
    { text: `  ${timeText(stored.tsMs)}`, style: "dim" },
  );
  if (text !== "") await output.line(isCut ? text.slice(0, shownCharacters) : text);
  if (isCut)
    await output.line({ text: `… ${text.length - shownCharacters} more characters; --raw shows all`, style: "dim" });
  await output.line("");
}
