import { isStoreHere } from "@throughline/agent/internal";
import { parseStoreUrl } from "@throughline/config";
import { isThere } from "@throughline/config/internal";
import { createServer, type Server } from "@throughline/server";
import type { CommandContext } from "../command.ts";
import { openStore } from "../open-store.ts";
import { listenFailure } from "../server/listening.ts";
import { version } from "../version.ts";
import { sourceFilesOf } from "./source-files.ts";

const address = { host: "127.0.0.1", port: 0 } as const;

/**
 * Serves the page in this process, on a free port of loopback. Its only token is in memory and reads; the server
 * appends no record and changes no entry.
 * @throws {ThroughlineError} ADDRESS_UNAVAILABLE, INSTALLATION_DAMAGED, and errors of opening the store
 */
export async function serveBeside(
  context: CommandContext,
  { folder, agents }: { readonly folder: string; readonly agents: readonly string[] | "*" },
): Promise<Server> {
  const { host, scope, storeUrl, storeParts: parts } = context;
  const { workingDirectory } = host;
  const { namespace } = scope;
  try {
    return await createServer({
      ...address,
      openStore: (onEvent) =>
        openStore(storeUrl, { workingDirectory, create: isUnborn(storeUrl, workingDirectory), parts, onEvent }),
      inspect: folder,
      localToken: { namespace, agents, scopes: ["read"], expiresAtMs: null },
      version,
      sourceFiles: sourceFilesOf(host, isStoreHere(context)),
      log: { write: (line) => void host.stderr.write(line) },
      logLevel: "error",
    });
  } catch (error) {
    throw listenFailure(error, address);
  }
}

/** A missing store is made, so that the page shows what an import brings while it is open. */
function isUnborn(storeUrl: string, workingDirectory: string): boolean {
  const found = parseStoreUrl(storeUrl, workingDirectory);
  const path = found.scheme === "jsonl" ? found.root : found.scheme === "sqlite" ? found.path : null;
  return path !== null && !isThere(path);
}

const idleMs = 10 * 60_000;
const lookEveryMs = 5000;

/** Returns a signal that aborts after 10 minutes without a request. An open tab asks every few seconds, or listens. */
export function whenIdle(
  server: Pick<Server, "idleMs">,
  { afterMs = idleMs, everyMs = lookEveryMs }: { readonly afterMs?: number; readonly everyMs?: number } = {},
): AbortSignal & Disposable {
  const ending = new AbortController();
  const timer = setInterval(() => {
    if (server.idleMs() >= afterMs) ending.abort();
  }, everyMs);
  return Object.assign(ending.signal, { [Symbol.dispose]: () => clearInterval(timer) });
}
