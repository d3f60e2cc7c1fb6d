import { join, sep } from "node:path";
import type { SettingValue } from "@throughline/core/internal";

/** What decides where sessions are kept. */
export interface StorePlaceOptions {
  /** `session.store` */
  readonly store: string;
  /** `session.storePath`, with `~` replaced; null: in the home. */
  readonly storePath: string | null;
  readonly home: string;
  /** `session.inherit.enabled`, and the folder that is inherited from. */
  readonly inheritsFrom: string | null;
}

/** Where sessions are kept. */
export interface StorePlace {
  readonly url: string;
  /** Of a folder that belongs to one agent; null: none is meant. */
  readonly agentId: string | null;
  /** True when the place given is one that is only read. */
  readonly isElsewhere: boolean;
}

/** The folder of one agent's sessions: `<root>/agents/<id>/sessions`. */
const agentFolder = /^(.*)[/\\]agents[/\\]([^/\\]+)[/\\]sessions[/\\]?$/s;

/**
 * The store of `session.store` and `session.storePath`. A path is used as given, with two exceptions. The folder of one
 * agent's sessions stands for the whole tree around it. An inherited folder is never written to, because its program
 * still uses it.
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

/** `~` and `~/…` are the user's directory. */
export function expandHome(path: SettingValue, userHome: string): string | null {
  if (typeof path !== "string") return null;
  if (path === "~") return userHome;
  return /^~[/\\]/.test(path) ? join(userHome, path.slice(2)) : path;
}

function samePath(one: string, other: string): boolean {
  // `join` leaves one separator at the end.
  const plain = (path: string): string => join(path, ".").replace(/[/\\]$/, "");
  return plain(one) === plain(other);
}
