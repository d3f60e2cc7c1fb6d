import { createJsonlStore } from "@throughline/store-jsonl";
import { mainRef } from "./session-fixture.ts";

/** Redacts the record `secret` of the session, or purges the session. */
const [root = "", how = ""] = process.argv.slice(2);
const store = createJsonlStore({ root });
if (how === "redacted") await store.redact(mainRef, ["secret"], { reason: "asked to" });
else await store.remove(mainRef, { purge: true });
await store.close();
