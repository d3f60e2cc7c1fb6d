import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ThroughlineError } from "@throughline/core";

/**
 * The file of a store's thread: the one that is given, else the one beside this module, in the form in which the package
 * runs, its source or what was built of it. Looked for when a thread is started: a bundle may have no file beside it.
 * @throws {ThroughlineError} CONFIG_INVALID where there is none
 */
export function storeThreadUrl(given: string | URL | undefined): URL {
  const here: unknown = import.meta.url;
  if (given !== undefined) {
    if (!URL.canParse(String(given))) throw noThread(String(given));
    return checked(new URL(given));
  }
  if (typeof here !== "string") throw noThread("this bundle");
  return checked(here.endsWith(".ts") ? new URL("./worker-thread.ts", here) : new URL("./worker-thread.js", here));
}

function checked(url: URL): URL {
  if (url.protocol === "file:" && !existsSync(fileURLToPath(url))) throw noThread(url.href);
  return url;
}

function noThread(place: string): ThroughlineError {
  return new ThroughlineError("CONFIG_INVALID", `The file of the store's thread is not there: ${place}.`, {
    outcome: "not-applied",
    details: { place },
    remedy:
      'Bundle "@throughline/store-sqlite/worker-thread" as an entry of its own, and give its URL as the option threadUrl.',
  });
}
