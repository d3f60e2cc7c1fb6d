import { parseStoreUrl } from "@throughline/config";
import { ThroughlineError } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { namedPath } from "../named-path.ts";
import { isThere } from "@throughline/config/internal";

/**
 * Writes a consistent copy of the store while other processes write. It overwrites no file. If some data cannot be
 * read, the copy is still written without it and the command exits with 3.
 */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { host, output, signal } = context;
  const path = namedPath(host, input.arguments[0] ?? "");
  let isWhole = true;
  const store = await context.openStore("read", (finding) => {
    isWhole &&= finding.code !== "FILE_UNREADABLE";
    output.finding(finding);
  });
  const { name } = store.capabilities;
  if (name === "memory" && parseStoreUrl(context.storeUrl, host.workingDirectory).scheme !== "memory")
    throw new ThroughlineError("STORE_NOT_FOUND", "There is no store yet, so there is nothing to back up.", {
      outcome: "not-applied",
      details: { store: context.storeUrl },
      remedy: "Make one first, for example with `throughline import PATH`, or name another one with --store.",
    });
  if (store.maintenance === undefined)
    throw new ThroughlineError("CAPABILITY_UNSUPPORTED", `The ${name} store makes no backup of its own.`, {
      details: { store: name },
      remedy: "Copy it instead: `throughline copy --all --all-agents --to-store sqlite:FILE`.",
    });
  if (isThere(path))
    throw new ThroughlineError("EXPORT_EXISTS", `${JSON.stringify(path)} exists already.`, { details: { path } });
  output.progress(`writing ${path}`);
  const { sizeBytes } = await store.maintenance.backup(path, { signal });
  if (output.isJson) await output.object({ kind: "backup", path, sizeBytes });
  else await output.line(`${path}\t${sizeBytes} bytes`);
  return isWhole ? 0 : 3;
}
