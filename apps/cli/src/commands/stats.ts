import { statSync } from "node:fs";
import type { CommandContext, CommandInput } from "../command.ts";
import { listSessions } from "@throughline/queries";
import { maskSecrets } from "@throughline/config/mask-secrets";
import { parseStoreUrl } from "@throughline/config/store-url";
import { timeText } from "../time-text.ts";

interface Totals {
  sessions: number;
  archived: number;
  records: number;
  messages: number;
  firstAtMs: number | null;
  lastAtMs: number | null;
  readonly agents: Set<string>;
}

/** Counts what is in the store; reads its index only. */
export async function run(context: CommandContext, _input: CommandInput): Promise<number> {
  const { output, scope, signal, storeUrl } = context;
  const store = await context.openStore("read");
  const totals: Totals = {
    sessions: 0,
    archived: 0,
    records: 0,
    messages: 0,
    firstAtMs: null,
    lastAtMs: null,
    agents: new Set(),
  };
  const chosen = scope.isAgentGiven ? { agentId: scope.agentId } : {};
  const query = {
    namespace: scope.namespace,
    ...chosen,
    state: "any" as const,
    sort: "key" as const,
    limit: 1000,
    signal,
  };
  for await (const { ref, archived, head, messageCount, createdAtMs, updatedAtMs } of listSessions(store, query)) {
    if (archived) totals.archived += 1;
    else totals.sessions += 1;
    totals.records += head.lastSeq;
    totals.messages += messageCount;
    totals.agents.add(ref.agentId);
    totals.firstAtMs = Math.min(totals.firstAtMs ?? createdAtMs, createdAtMs);
    totals.lastAtMs = Math.max(totals.lastAtMs ?? updatedAtMs, updatedAtMs);
  }
  const { capabilities } = store;
  const stats = {
    store: maskSecrets(storeUrl),
    storeName: capabilities.name,
    defaultDurability: capabilities.defaultDurability,
    agents: totals.agents.size,
    sessions: totals.sessions,
    archivedSessions: totals.archived,
    records: totals.records,
    messages: totals.messages,
    firstAtMs: totals.firstAtMs,
    lastAtMs: totals.lastAtMs,
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

/** Of a store in one file, with what SQLite keeps beside it; null where there is no such file. */
function fileSize({ host, storeUrl }: CommandContext): number | null {
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  if (address.scheme !== "sqlite") return null;
  const sizes = [address.path, `${address.path}-wal`].map((path) => statSync(path, { throwIfNoEntry: false })?.size);
  return sizes[0] === undefined ? null : sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
}
