import { join } from "node:path";
import type { SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createSqliteStore } from "@throughline/store-sqlite";

/** The store of several processes, by its name. */
export function openStore(kind: string, folder: string): SessionStore {
  if (kind === "sqlite") return createSqliteStore({ path: join(folder, "sessions.db") });
  if (kind === "jsonl") return createJsonlStore({ root: folder });
  throw new Error(`There is no store ${kind}.`);
}
