// Purges session a and is killed so many turns of the event loop after the session was gone; with "index" when all of it is
// deleted but the index that it was taken out of.
import process from "node:process";
import Database from "better-sqlite3";
import { createSqliteStore } from "@throughline/store-sqlite";
import { refOf } from "./append-drafts.ts";

const [path = "", until = "0"] = process.argv.slice(2);
let turns = until === "index" ? Infinity : Number(until);

function isRowGone(): boolean {
  const database = new Database(path, { readonly: true });
  const row = database.prepare("SELECT 1 FROM store_sessions WHERE namespace = '(purged)'").get();
  database.close();
  return row === undefined;
}

function endSoon(): void {
  if (turns-- <= 0 || (until === "index" && isRowGone())) process.kill(process.pid, "SIGKILL");
  setImmediate(endSoon);
}

const store = createSqliteStore({
  path,
  searchFill: "on-demand",
  onEvent: ({ name }) => {
    if (name === "session-removed") endSoon();
  },
});
await store.remove(refOf("a"), { purge: true });
