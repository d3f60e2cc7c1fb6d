import process from "node:process";
import type { SessionStore } from "@throughline/core";
import { createServer } from "@throughline/server";
import { createSqliteStore } from "@throughline/store-sqlite";

/** Has the page and the API on one address. */
export interface PageServer {
  readonly url: string;
  readonly token: string;
  readonly store: SessionStore;
  close(): Promise<void>;
}

/** Serves the built page of `folder` and a store, as `throughline ui` does. */
export async function servePage(folder: string, path: string, port: number = 0): Promise<PageServer> {
  const store = await createSqliteStore({ path });
  const server = await createServer({
    openStore: async () => store,
    port,
    inspect: folder,
    localToken: { namespace: "", agents: "*", scopes: ["read"], expiresAtMs: null },
  });
  return { url: server.url, token: server.localToken ?? "", store, close: () => server.close() };
}

if (import.meta.main) {
  const [folder = "", path = "", port = "0"] = process.argv.slice(2);
  const { url, token } = await servePage(folder, path, Number(port));
  process.stdout.write(`${url}/inspect/#token=${token}\n`);
}
