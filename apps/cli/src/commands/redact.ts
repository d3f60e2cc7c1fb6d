import { redactRecords } from "@throughline/core";
import type { SessionRef, SessionStore } from "@throughline/core";
import type { SharedRecords } from "@throughline/core/internal";
import { forgetTypedLines } from "../chat/typed-lines.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { noteSpooledCalls } from "../server/spooled-calls.ts";
import { usageError } from "../error-report.ts";
import { findRecord, resolveSession } from "@throughline/core/internal";

const defaultReason = "redacted on the command line";
/** A question with more names is not readable. */
const namedAtMost = 5;

/** Leaves a tombstone with the reason in each place, so that seq numbers stay. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const [text = "", ...names] = input.arguments;
  const reason = (input.options["reason"] as string | undefined) ?? defaultReason;
  if (reason.trim() === "") throw usageError("A reason is text; it is what stays.");
  const { output, scope, signal } = context;
  const store = await context.openStore("write");
  const { ref, sessionId } = await resolveSession(store, text, scope, { isExact: true, signal });
  const records: { readonly id: string; readonly seq: number }[] = [];
  for (const name of names) records.push(await findRecord(store, ref, name, signal));
  const before = await sharersOf(
    store,
    ref,
    records.map(({ seq }) => seq),
  );
  const others = before === null || before.length === 0 ? "" : ` ${sharedText(before)} erased there too.`;
  const erased = `Permanently erase ${counted(records.length, "record")} of ${JSON.stringify(ref.key)}?`;
  await context.confirm(`${erased}${others} This cannot be undone.`);
  const ids = records.map(({ id }) => id);
  const { seqs } = await redactRecords(store, ref, ids, { reason });
  const shared = await sharersOf(store, ref, seqs);
  forgetTypedLines(context, ref.agentId);
  await noteSpooledCalls(context);
  if (output.isJson) {
    await output.object({
      kind: "redaction",
      key: ref.key,
      sessionId,
      ids,
      seqs,
      reason,
      shared: shared?.map(sharedRow) ?? null,
    });
    return 0;
  }
  const line = (key: string, erasedSeqs: readonly number[], what: string): Promise<void> =>
    output.line(
      `${key}\t${counted(erasedSeqs.length, "record")} ${what}\t${erasedSeqs.map((seq) => `#${seq}`).join(" ")}`,
    );
  await line(ref.key, seqs, "redacted");
  for (const { ref: other, seqs: theirs } of shared ?? []) await line(nameOf(other), theirs, "redacted there too");
  return 0;
}

/** Returns null if the store cannot tell. A store without forks shares no records. */
async function sharersOf(
  store: SessionStore,
  ref: SessionRef,
  seqs: readonly number[],
): Promise<readonly SharedRecords[] | null> {
  if (store.fork === undefined) return [];
  return store.fork.sharers === undefined ? null : await store.fork.sharers(ref, seqs);
}

function sharedText(shared: readonly SharedRecords[]): string {
  const names = shared.slice(0, namedAtMost).map(({ ref }) => JSON.stringify(nameOf(ref)));
  const more = shared.length > names.length ? ` and ${shared.length - names.length} more` : "";
  const count = new Set(shared.flatMap(({ seqs }) => seqs)).size;
  const sessions = counted(shared.length, "other session");
  return `${counted(count, "record")} shared with ${sessions} (${names.join(", ")}${more}) ${count === 1 ? "is" : "are"}`;
}

/** An archived session is known by its id, because its key may belong to another session. */
function nameOf({ key, archiveId }: SessionRef): string {
  return archiveId ?? key;
}

function sharedRow({ ref, sessionId, seqs }: SharedRecords): Readonly<Record<string, unknown>> {
  return { agentId: ref.agentId, key: ref.key, sessionId, archived: ref.archiveId !== undefined, seqs };
}
