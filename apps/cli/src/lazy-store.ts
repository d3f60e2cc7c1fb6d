import { type AgentContext, type AskPassphrase, homeOf, storePartsOf } from "@throughline/agent/internal";
import { parseStoreUrl } from "@throughline/config";
import { isThere } from "@throughline/config/internal";
import type { Finding, SessionStore } from "@throughline/core";
import type { CommandContext } from "./command.ts";
import type { Host } from "./host.ts";
import { openStore } from "./open-store.ts";
import type { Output } from "./output.ts";

export interface StorePlace {
  readonly url: string;
  readonly isDefault: boolean;
  readonly tokenPlaces: CommandContext["tokenPlaces"];
  readonly parts: CommandContext["storeParts"];
}

/** Returns the store that the settings name. */
export function storePlace(context: AgentContext, ask: AskPassphrase | null): StorePlace {
  const { config, environment, storeUrl: url } = context;
  return {
    url,
    isDefault: config.settings.some(({ key, source }) => key === "store" && source === "default"),
    tokenPlaces: { environment, home: homeOf(context) },
    parts: storePartsOf(context, ask),
  };
}

/** Returns whether nothing was ever stored: the user did not name the default store, so a missing one is no error. */
export function isUnborn({ url, isDefault }: StorePlace, workingDirectory: string): boolean {
  const address = parseStoreUrl(url, workingDirectory);
  const path = address.scheme === "jsonl" ? address.root : address.scheme === "sqlite" ? address.path : null;
  return isDefault && path !== null && !isThere(path);
}

export interface LazyStore {
  readonly open: CommandContext["openStore"];
  close(): Promise<void>;
}

/** Opens the store at the first call, and only once. */
export function lazyStore(host: Host, place: StorePlace, output: Output): LazyStore {
  const { url, tokenPlaces, parts } = place;
  let opened: Promise<SessionStore> | null = null;
  const open = (purpose: "list" | "read" | "write", listener: (finding: Finding) => void): Promise<SessionStore> => {
    const isWriter = purpose === "write";
    const isAbsent = !isWriter && isUnborn(place, host.workingDirectory);
    if (isAbsent) output.note(`There is no store yet at ${url}; the first import or append makes it.`);
    return openStore(isAbsent ? "memory:" : url, {
      workingDirectory: host.workingDirectory,
      create: isWriter,
      isListed: purpose === "list",
      tokenPlaces,
      parts,
      onEvent: (event) => {
        if (event.name === "finding") listener(event.finding);
      },
    });
  };
  return {
    open: (purpose, listener = (finding) => output.finding(finding)) => (opened ??= open(purpose, listener)),
    close: async () => {
      // A failed open was reported already.
      await (await opened?.catch(() => null))?.close();
    },
  };
}
