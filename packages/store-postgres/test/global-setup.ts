import process from "node:process";
import { startPostgres, type PostgresPlace } from "./postgres-server.ts";

declare module "vitest" {
  export interface ProvidedContext {
    readonly postgres: PostgresPlace;
  }
}

/** One server for the whole run; tests take a schema each. */
export async function setup(project: {
  readonly provide: (key: "postgres", value: PostgresPlace) => void;
}): Promise<() => Promise<void>> {
  const server = await startPostgres();
  if ("unavailable" in server) {
    // Whoever names a server wants it tested, and not skipped.
    if ((process.env["THROUGHLINE_POSTGRES_BIN"] ?? "") !== "") throw new Error(server.unavailable);
    project.provide("postgres", server);
    return () => Promise.resolve();
  }
  const { url, dataFolder } = server;
  project.provide("postgres", { url, dataFolder });
  return () => server.stop();
}
