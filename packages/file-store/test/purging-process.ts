import process from "node:process";
import { sessionRef } from "@throughline/core";
import { createS3FileStore, withFileStore } from "@throughline/file-store";
import { createSqliteStore } from "@throughline/store-sqlite";
import { credentials } from "./s3-process.ts";

const [path = "", endpoint = "", key = "", recordId = ""] = process.argv.slice(2);
const files = createS3FileStore({ bucket: "bucket", endpoint, credentials });
const store = withFileStore(createSqliteStore({ path }), { files });
const ref = sessionRef({ key });
await store.load(ref);
process.send?.("ready");
if (recordId === "") await store.remove(ref, { purge: true });
else await store.redact(ref, [recordId], { reason: "test" });
await store.close();
process.send?.("done");
process.disconnect?.();
