import { redactRecords } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { findRecord } from "../find-record.ts";
import { resolveSession } from "../resolve-session.ts";

const defaultReason = "redacted on the command line";

/** Takes the content of records away for good; a tombstone with the reason stays in each place. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const [text = "", ...names] = input.arguments;
  const reason = (input.options["reason"] as string | undefined) ?? defaultReason;
  if (reason.trim() === "") throw usageError("A reason is text; it is what stays.");
  const { output, scope, signal } = context;
  const store = await context.openStore("write");
  const { ref, sessionId } = await resolveSession(store, text, scope, { isExact: true, signal });
  const ids: string[] = [];
  for (const name of names) ids.push((await findRecord(store, ref, name, signal)).id);
  await context.confirm(`Take away the content of ${counted(ids.length, "record")} of ${ref.key} for good?`);
  const { seqs } = await redactRecords(store, ref, ids, { reason });
  if (output.isJson) await output.object({ kind: "redaction", key: ref.key, sessionId, ids, seqs, reason });
  else
    await output.line(
      `${ref.key}\t${counted(seqs.length, "record")} redacted\t${seqs.map((seq) => `#${seq}`).join(" ")}`,
    );
  return 0;
}
