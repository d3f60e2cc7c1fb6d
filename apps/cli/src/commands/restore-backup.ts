import { ThroughlineError } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { foreignDatabaseError, sqliteFileOf } from "@throughline/transfer/internal";
import { namedPath } from "../named-path.ts";
import { isThere, maskSecrets } from "@throughline/config/internal";
import { openStore } from "../open-store.ts";
import { listSessions } from "@throughline/core/internal";
import { parseStoreUrl } from "@throughline/config";

/** Replaces the store only after a confirmation, and keeps the old one in a file beside it. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { host, output, storeUrl } = context;
  const backupPath = namedPath(host, input.arguments[0] ?? "");
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  if (address.scheme !== "sqlite")
    throw new ThroughlineError("CAPABILITY_UNSUPPORTED", `${maskSecrets(storeUrl)} is no store in one file.`, {
      details: { scheme: address.scheme },
      remedy:
        address.scheme === "jsonl"
          ? "The backup of a jsonl store is a store itself: name it with --store jsonl:DIRECTORY, or move it into place."
          : "Copy the sessions instead: `throughline copy --all --all-agents --store sqlite:FILE --to-store URL`.",
    });
  const { path } = address;
  if (!isThere(backupPath))
    throw new ThroughlineError("FILE_NOT_FOUND", `${JSON.stringify(backupPath)} does not exist.`, {
      details: { path: backupPath },
    });
  // A backup may replace only a store. The database of another program must not be moved away.
  if (sqliteFileOf(path) === "foreign") throw await foreignDatabaseError("STORE_FOREIGN", path);
  if (isThere(path)) await context.confirm(`Put the backup in the place of ${path}, which is kept beside it?`);
  const { restoreSqliteBackup } = await import("@throughline/store-sqlite");
  const keptAs = `before-restore-${new Date().toISOString().replaceAll(/[:.]/g, "-")}`;
  const { keptPath } = restoreSqliteBackup({ backupPath, path, keptAs });
  const sessions = await countSessions(context);
  if (output.isJson) await output.object({ kind: "restored", path, backup: backupPath, keptPath, sessions });
  else await output.line(`${path}\t${counted(sessions, "session")}\tfrom ${backupPath}`);
  if (keptPath !== null) output.note(`What was there is kept as ${keptPath}`);
  return 0;
}

async function countSessions({ host, storeUrl, storeParts: parts }: CommandContext): Promise<number> {
  let count = 0;
  const { workingDirectory } = host;
  await using store = await openStore(storeUrl, { workingDirectory, create: false, parts, isListed: true });
  for await (const _ of listSessions(store, { state: "any", sort: "key", limit: 1000 })) count += 1;
  return count;
}
