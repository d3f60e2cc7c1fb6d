import { loadExisting, readWindow } from "@throughline/core";
import type { SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { followRecords } from "../follow-records.ts";
import { readRecords } from "../read-records.ts";
import { readTail } from "../read-tail.ts";
import { messageRole } from "../record-text.ts";
import { resolveSession } from "../resolve-session.ts";
import { selectRecords } from "../select-records.ts";
import type { RecordSelection } from "../select-records.ts";
import { showRecord } from "../show-record.ts";

interface ShowOptions {
  readonly tail?: number;
  readonly afterSeq?: number;
  readonly role?: string;
  readonly follow?: boolean;
  readonly all?: boolean;
  readonly allBranches?: boolean;
  readonly raw?: boolean;
}

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
  const { chosen, lastSeq } = await readChosen(store, ref, selection, signal);
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

/** The records to show, and up to which the session was read: what comes later is for `--follow`. */
async function readChosen(
  store: SessionStore,
  ref: SessionRef,
  selection: RecordSelection,
  signal: AbortSignal,
): Promise<{ readonly chosen: readonly StoredRecord[]; readonly lastSeq: number }> {
  const { head } = await loadExisting(store, ref);
  const { lastSeq } = head;
  const isWindow = !selection.isAll && !selection.isAllBranches;
  const { tail } = selection;
  if (tail !== null) {
    const query = { head, selection: { ...selection, tail }, roleOf };
    return { chosen: await readTail(store, ref, query, signal), lastSeq };
  }
  if (isWindow) {
    const { state, records } = await readWindow(store, ref, { signal });
    return {
      chosen: selectRecords(records, state.head.headId, selection, roleOf),
      lastSeq: state.head.lastSeq,
    };
  }
  const records = (await readRecords(store, ref, signal)).filter(({ seq }) => seq <= lastSeq);
  return { chosen: selectRecords(records, head.headId, selection, roleOf), lastSeq };
}

function roleOf({ record }: StoredRecord): string | null {
  return messageRole(record);
}

/** Shows what is appended, until interrupted. Records of other branches only when all were asked for. */
async function follow(
  context: CommandContext,
  store: SessionStore,
  ref: SessionRef,
  { afterSeq, role, isAllBranches }: RecordSelection,
  isRaw: boolean,
): Promise<void> {
  const { output, signal } = context;
  for await (const records of followRecords(store, ref, { afterSeq, signal })) {
    for (const stored of records) {
      if (role !== null && messageRole(stored.record) !== role) continue;
      if (isAllBranches || !stored.side) await showRecord(context, stored, isRaw);
    }
    await output.flush();
  }
}
