import process from "node:process";
import { homeOf } from "@throughline/agent/internal";
import { parseStoreUrl } from "@throughline/config";
import { maskSecrets } from "@throughline/config/internal";
import { ThroughlineError } from "@throughline/core";
import type { CommandContext } from "../command.ts";
import { pageAddress } from "./page-address.ts";
import { readServerFile, serverFilePath } from "../server/server-file.ts";

/** Is a server that has the page. */
export interface KnownServer {
  readonly url: string;
}

const probeMs = 1500;
/** No other server sends this policy, so a program that took the port of a killed server gets no token. */
const sign = "trusted-types throughline-worker";

/**
 * Returns the server of `--store http…`, else the running server of this home if it has this store; null without one.
 * @throws {ThroughlineError} STORE_UNREACHABLE, and CAPABILITY_UNSUPPORTED for a remote server without the page;
 *   PATH_UNSAFE for a `server.json` that others can read
 */
export async function findKnownServer(context: CommandContext): Promise<KnownServer | null> {
  const { host, storeUrl } = context;
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  if (address.scheme === "http") return remoteServer(address.url, context.signal);
  const file = readServerFile(serverFilePath(homeOf(context)));
  if (file === null || !isOwnProcess(file.pid)) return null;
  if (file.store === null ? isStoreGiven(context) : file.store !== maskSecrets(storeUrl)) return null;
  return (await probe(file.url, context.signal)) === "page" ? { url: file.url } : null;
}

async function remoteServer(url: string, signal: AbortSignal): Promise<KnownServer> {
  const found = await probe(url, signal);
  if (found === "page") return { url };
  if (found === "away")
    throw new ThroughlineError("STORE_UNREACHABLE", `The server at ${maskSecrets(url)} does not answer.`, {
      outcome: "not-applied",
    });
  throw new ThroughlineError("CAPABILITY_UNSUPPORTED", `The server at ${maskSecrets(url)} does not have the page.`, {
    outcome: "not-applied",
    remedy: "Update that server, or write a session to a file: `throughline export KEY --to html`.",
  });
}

function isStoreGiven({ settings }: CommandContext): boolean {
  return settings.some(({ key, source }) => key === "store" && (source === "flag" || source === "environment"));
}

/** A process of another user is not the server that wrote the file: that one was killed, and its number is in use. */
function isOwnProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    // There is no such process, or it belongs to another user.
    return false;
  }
}

/** Asks without a token. */
async function probe(url: string, signal: AbortSignal): Promise<"page" | "no page" | "away"> {
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(probeMs)]);
    const response = await fetch(pageAddress(url, null), { signal: limit, redirect: "error" });
    await response.body?.cancel();
    const isPage = response.status === 200 && response.headers.get("content-security-policy")?.includes(sign) === true;
    return isPage ? "page" : "no page";
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Error)) throw error;
    return "away";
  }
}
