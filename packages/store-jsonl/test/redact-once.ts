// Redacts one record of the main session, as another process beside the one that the test runs in.
import process from "node:process";
import { createJsonlStore } from "@throughline/store-jsonl";
import { mainRef } from "./session-fixture.ts";

const [root = "", id = ""] = process.argv.slice(2);
await using store = createJsonlStore({ root });
await store.redact(mainRef, [id], { reason: "asked for" });
