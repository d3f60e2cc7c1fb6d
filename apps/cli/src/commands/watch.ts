import type { CommandContext, CommandInput } from "../command.ts";
import { followRecords, messageRole, resolveSession } from "@throughline/core/internal";
import { showRecord } from "../show-record.ts";

/** The command has no option `--raw`. */
const isRaw = false;

interface WatchOptions {
  readonly afterSeq?: number;
  readonly role?: string;
  readonly limit?: number;
}

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as WatchOptions;
  const { output, scope, signal } = context;
  const store = await context.openStore("read");
  const { ref, head } = await resolveSession(store, input.arguments[0] ?? "", scope, { signal });
  const afterSeq = options.afterSeq ?? head.lastSeq;
  if (!output.isJson) output.note(`Watching ${ref.key} after record ${afterSeq}; Ctrl-C ends it.`);
  let remaining = options.limit ?? Number.POSITIVE_INFINITY;
  let shownCount = 0;
  for await (const records of followRecords(store, ref, { afterSeq, signal })) {
    for (const stored of records) {
      if (options.role !== undefined && messageRole(stored.record) !== options.role) continue;
      if (remaining === 0) break;
      remaining -= 1;
      shownCount += 1;
      await showRecord(context, stored, isRaw);
    }
    // The flush shows this page now, because the next record may arrive much later.
    await output.flush();
    if (remaining > 0) continue;
    if (output.isJson) await output.end(shownCount);
    return 0;
  }
  return 0;
}
