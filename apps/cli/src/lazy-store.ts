import { type AgentContext, homeOf } from "@throughline/agent/internal";
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
}

/** Returns the store that the settings name. */
export function storePlace(context: AgentContext): StorePlace {
  const { config, environment, storeUrl: url } = context;
  return {
    url,
    isDefault: config.settings.some(({ key, source }) => key === "store" && source === "default"),
    tokenPlaces: { environment, home: homeOf(context) },
  };
}

export interface LazyStore {
  readonly open: CommandContext["openStore"];
  close(): Promise<void>;
}

/** Opens the store at the first call, and only once. */
export function lazyStore(host: Host, { url, isDefault, tokenPlaces }: StorePlace, output: Output): LazyStore {
  let opened: Promise<SessionStore> | null = null;
  const open = (isWriter: boolean, listener: (finding: Finding) => void): Promise<SessionStore> => {
    const address = parseStoreUrl(url, host.workingDirectory);
    // The user did not name the default store, so a missing one is an empty store and no error.
    const path = address.scheme === "jsonl" ? address.root : address.scheme === "sqlite" ? address.path : null;
    const isUnborn = !isWriter && isDefault && path !== null && !isThere(path);
    if (isUnborn) output.note(`There is no store yet at ${url}; the first import or append makes it.`);
    return openStore(isUnborn ? "memory:" : url, {
      workingDirectory: host.workingDirectory,
      create: isWriter,
      tokenPlaces,
      onEvent: (event) => {
        if (event.name === "finding") listener(event.finding);
      },
    });
  };
  return {
    open: (purpose, listener = (finding) => output.finding(finding)) =>
      (opened ??= open(purpose === "write", listener)),
    close: async () => {
      // A failed open was reported already.
      await (await opened?.catch(() => null))?.close();
    },
  };
}
