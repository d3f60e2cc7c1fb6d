import { join, sep } from "node:path";
import type { SettingValue } from "@throughline/core/internal";

export interface StorePlaceOptions {
  readonly store: string;
  /** This is `session.storePath` with `~` replaced; null means a path in the home. */
  readonly storePath: string | null;
  readonly home: string;
  /** Sessions are inherited from this folder; null means that `session.inherit.enabled` is false. */
  readonly inheritsFrom: string | null;
}

export interface StorePlace {
  readonly url: string;
  /** A path may name the folder of one agent; null means that it does not. */
  readonly agentId: string | null;
  /** True means that the given folder is only read, because its program still writes there. */
  readonly isElsewhere: boolean;
}

/** One agent's sessions are in `<root>/agents/<id>/sessions`. */
const agentFolder = /^(.*)[/\\]agents[/\\]([^/\\]+)[/\\]sessions[/\\]?$/s;

/**
 * Returns the store for `session.store` and `session.storePath`. A path is used as given, with two exceptions. The
 * folder of one agent's sessions stands for the whole tree around it. An inherited folder is never written to, because
 * its program still uses it.
 */
export function storePlace({ store, storePath, home, inheritsFrom }: StorePlaceOptions): StorePlace {
  const place = (url: string, agentId: string | null = null): StorePlace => ({ url, agentId, isElsewhere: false });
  if (store === "memory") return place("memory:");
  if (store === "postgres") return place(storePath ?? "postgres://localhost/throughline");
  if (store === "sqlite") return place(`sqlite:${storePath ?? join(home, "sessions.db")}`);
  if (storePath === null) return place(`jsonl:${home}`);
  if (inheritsFrom !== null && samePath(inheritsFrom, storePath))
    return { ...place(`jsonl:${home}`), isElsewhere: true };
  const [, root, agentId] = agentFolder.exec(storePath) ?? [];
  return root === undefined ? place(`jsonl:${storePath}`) : place(`jsonl:${root === "" ? sep : root}`, agentId ?? null);
}

/** A configuration is not read by a shell, so `~` and `~/…` are expanded here. */
export function expandHome(path: SettingValue, userHome: string): string | null {
  if (typeof path !== "string") return null;
  if (path === "~") return userHome;
  return /^~[/\\]/.test(path) ? join(userHome, path.slice(2)) : path;
}

function samePath(one: string, other: string): boolean {
  // `join` leaves one separator at the end, which must not make equal paths differ.
  const plain = (path: string): string => join(path, ".").replace(/[/\\]$/, "");
  return plain(one) === plain(other);
}
