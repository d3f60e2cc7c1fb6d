import { statSync } from "node:fs";
import type { CommandContext, CommandInput } from "../command.ts";
import { sessionTotals } from "@throughline/queries";
import { maskSecrets } from "@throughline/config/internal";
import { parseStoreUrl } from "@throughline/config";
import { timeText } from "../time-text.ts";

/** Counts what is in the store; reads its index only. */
export async function run(context: CommandContext, _input: CommandInput): Promise<number> {
  const { output, scope, signal, storeUrl } = context;
  const store = await context.openStore("read");
  const agent = scope.isAgentGiven ? { agentId: scope.agentId } : {};
  const totals = await sessionTotals(store, { namespace: scope.namespace, ...agent, signal });
  const { capabilities } = store;
  const stats = {
    store: maskSecrets(storeUrl),
    storeName: capabilities.name,
    defaultDurability: capabilities.defaultDurability,
    ...totals,
    sizeBytes: fileSize(context),
    searchLag: store.search === undefined ? null : await store.search.lag(),
  };
  if (output.isJson) await output.object({ kind: "stats", ...stats });
  else {
    for (const [name, value] of Object.entries(stats)) {
      const text = value === null ? "-" : name.endsWith("AtMs") ? timeText(Number(value)) : String(value);
      await output.line({ text: name, style: "cyan" }, `\t${text}`);
    }
  }
  return 0;
}

/** The size of a store in one file, with the files that SQLite keeps beside it; null if the store is not one file. */
function fileSize({ host, storeUrl }: CommandContext): number | null {
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  if (address.scheme !== "sqlite") return null;
  const sizes = [address.path, `${address.path}-wal`].map((path) => statSync(path, { throwIfNoEntry: false })?.size);
  return sizes[0] === undefined ? null : sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
}
