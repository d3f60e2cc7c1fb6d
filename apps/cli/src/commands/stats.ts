import { statSync } from "node:fs";
import type { CommandContext, CommandInput } from "../command.ts";
import { sessionTotals } from "@throughline/core/internal";
import { maskSecrets } from "@throughline/config/internal";
import { parseStoreUrl } from "@throughline/config";
import { grouped, sizeText } from "../counted.ts";
import { timeText } from "../time-text.ts";

/** Reads only the session index and no record, unless activity is asked for. */
export async function run(context: CommandContext, { options }: CommandInput): Promise<number> {
  if (options["activity"] === true) {
    const { showActivity } = await import("../activity/show-activity.ts");
    await showActivity(context);
    return 0;
  }
  const { output, scope, signal, storeUrl } = context;
  const store = await context.openStore("list");
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
    const rows: readonly (readonly [string, string])[] = [
      ["store", stats.store],
      ["durability", stats.defaultDurability],
      ["size", stats.sizeBytes === null ? "-" : sizeText(stats.sizeBytes)],
      ["agents", grouped(stats.agents)],
      ["sessions", `${grouped(stats.sessions)} (${grouped(stats.archivedSessions)} archived)`],
      ["records", grouped(stats.records)],
      ["messages", grouped(stats.messages)],
      ["first activity", timeText(stats.firstAtMs)],
      ["last activity", timeText(stats.lastAtMs)],
      ["not indexed", stats.searchLag === null ? "-" : `${grouped(stats.searchLag)} records`],
    ];
    for (const [name, text] of rows) await output.line({ text: name.padEnd(15), style: "cyan" }, text);
  }
  return 0;
}

/** Includes the write-ahead log; null if the store is not one file. */
function fileSize({ host, storeUrl }: CommandContext): number | null {
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  if (address.scheme !== "sqlite") return null;
  const sizes = [address.path, `${address.path}-wal`].map((path) => statSync(path, { throwIfNoEntry: false })?.size);
  return sizes[0] === undefined ? null : sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
}
