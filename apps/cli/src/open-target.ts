import type { SessionStore } from "@throughline/core";
import type { CommandContext } from "./command.ts";
import { openStore } from "./open-store.ts";

/**
 * Opens the target store of a command. A missing store is created, and findings are printed.
 * @throws {ThroughlineError} STORE_URL_INVALID
 */
export function openTarget(
  {
    host,
    output,
    tokenPlaces,
    storeParts: parts,
  }: Pick<CommandContext, "host" | "output" | "tokenPlaces" | "storeParts">,
  url: string,
): Promise<SessionStore> {
  return openStore(url, {
    workingDirectory: host.workingDirectory,
    create: true,
    tokenPlaces,
    parts,
    onEvent: (event) => {
      if (event.name === "finding") output.finding(event.finding);
    },
  });
}
