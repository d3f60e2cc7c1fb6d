import { type SessionStore, ThroughlineError } from "@throughline/core";
import type { RebuiltFile } from "@throughline/core/internal";
import type { CommandContext } from "../command.ts";
import { counted } from "../counted.ts";
import { forgetUsage } from "../usage/usage-file.ts";

export async function run(context: CommandContext): Promise<number> {
  const { output, openStore, signal } = context;
  forgetUsage(context);
  const store = await openStore("write");
  const { name } = store.capabilities;
  output.progress("reading every record");
  const lag = await rebuildSearch(store, signal);
  const files: RebuiltFile[] = [];
  for await (const file of store.maintenance?.rebuild?.({ signal }) ?? []) files.push(file);
  if (lag === null && store.maintenance?.rebuild === undefined)
    throw new ThroughlineError("CAPABILITY_UNSUPPORTED", `The ${name} store keeps no index.`, {
      details: { store: name },
      remedy: "There is nothing to do: `throughline search` reads every record of it.",
    });
  if (output.isJson) {
    await output.object({ kind: "reindex", store: name, lag, files });
    return 0;
  }
  if (lag !== null) await output.line(`The search index was rebuilt; ${lag} records are not in it.`);
  for (const { path, sessions } of files) await output.line(`Wrote ${path} from ${counted(sessions, "session")}.`);
  if (lag === null) await output.line(`The ${name} store keeps no search index: a search reads every record.`);
  return 0;
}

/** Counts the records that the new index lacks; null without an index. */
async function rebuildSearch({ search }: SessionStore, signal: AbortSignal): Promise<number | null> {
  if (search?.rebuild === undefined) return null;
  await search.rebuild({ signal });
  return search.lag();
}
