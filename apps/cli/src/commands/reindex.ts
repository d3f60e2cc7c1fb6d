import { ThroughlineError } from "@throughline/core";
import type { CommandContext } from "../command.ts";

/** Makes the store's search index anew from the records. */
export async function run({ output, openStore, signal }: CommandContext): Promise<number> {
  const store = await openStore("write");
  const { name } = store.capabilities;
  if (store.search?.rebuild === undefined)
    throw new ThroughlineError("CAPABILITY_UNSUPPORTED", `The ${name} store keeps no search index.`, {
      details: { store: name },
      remedy: "There is nothing to do: `throughline search` reads every record of it.",
    });
  output.progress("reading every record");
  await store.search.rebuild({ signal });
  const lag = await store.search.lag();
  if (output.isJson) await output.object({ kind: "reindex", store: name, lag });
  else await output.line(`The search index was made anew; ${lag} records are not in it.`);
  return 0;
}
