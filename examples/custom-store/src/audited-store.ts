// A store around another one: it writes a line to a file for every append, before anybody is told that the append succeeded.
import { open } from "node:fs/promises";
import type { AppendResult, SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";

/** What it needs to know. */
export interface AuditedStoreOptions {
  /** The database. */
  readonly path: string;
  /** The file for the lines, JSON, one for each append: `{ at, key, records, replayed }`. */
  readonly auditPath: string;
}

/** A SQLite store with a trail. Closing it closes the file too. */
export function createAuditedStore({ path, auditPath }: AuditedStoreOptions): SessionStore {
  const inner = createSqliteStore({ path });
  const file = open(auditPath, "a");
  file.catch(() => undefined); // an append reports it; before that nobody waits for it
  const own: Pick<SessionStore, "append" | "close"> = {
    async append(ref, drafts, options): Promise<AppendResult> {
      const trail = await file; // no trail, no append
      const result = await inner.append(ref, drafts, options);
      const { records, replayed } = result;
      const line = { at: new Date().toISOString(), key: ref.key, records: records.map(({ id }) => id), replayed };
      await trail.appendFile(`${JSON.stringify(line)}\n`);
      return result;
    },
    async close() {
      await inner.close();
      await (await file).close();
    },
  };
  // Everything else is the inner store's: all operations and facets, those of later versions too.
  return new Proxy<SessionStore>(inner, {
    get(target, name) {
      const isOwn = Object.hasOwn(own, name);
      const value: unknown = Reflect.get(isOwn ? own : target, name);
      return typeof value === "function" && !isOwn ? value.bind(target) : value;
    },
  });
}
