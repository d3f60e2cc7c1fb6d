import { fileURLToPath } from "node:url";
import { ThroughlineError } from "@throughline/core";
import { isThere } from "./store-file.ts";

/**
 * The file of a store's thread: the one that is given, else the one beside this module, as source or as it was built.
 * Looked for when a thread is started: a bundle may have no file beside it.
 * @throws {ThroughlineError} CONFIG_INVALID for a file that is not there
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
  if (url.protocol === "file:" && !isThere(fileURLToPath(url))) throw noThread(url.href);
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
