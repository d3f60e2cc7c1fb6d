// Purges or redacts a session while another process reads it, which keeps the log from being cut.
import process from "node:process";
import { hasErrorCode } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { refOf } from "./append-drafts.ts";

const [path = "", name = "", id = ""] = process.argv.slice(2);
const store = createSqliteStore({ path, lockTimeoutMs: 0, searchFill: "on-demand" });
try {
  if (id === "") await store.remove(refOf(name), { purge: true });
  else await store.redact(refOf(name), [id], { reason: "asked for" });
} catch (error) {
  if (!hasErrorCode(error, "STORE_LOCKED") || error.outcome !== "unknown") throw error;
}
await store.close();
