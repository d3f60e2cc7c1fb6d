import type { CommandContext, CommandInput } from "../command.ts";
import { followRecords, messageRole, resolveSession } from "@throughline/core/internal";
import { showRecord } from "../show-record.ts";

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
  let left = options.limit ?? Number.POSITIVE_INFINITY;
  let count = 0;
  for await (const records of followRecords(store, ref, { afterSeq, signal })) {
    for (const stored of records) {
      if (options.role !== undefined && messageRole(stored.record) !== options.role) continue;
      if (left === 0) break;
      left -= 1;
      count += 1;
      await showRecord(context, stored, false);
    }
    await output.flush();
    if (left > 0) continue;
    if (output.isJson) await output.end(count);
    return 0;
  }
  return 0;
}
