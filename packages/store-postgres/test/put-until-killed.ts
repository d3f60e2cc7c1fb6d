// Puts files and appends records that refer to them until it is killed, and prints each that was acknowledged.
import { randomBytes } from "node:crypto";
import process from "node:process";
import { createPostgresStore } from "@throughline/store-postgres";

const [url = "", schema = ""] = process.argv.slice(2);
const store = createPostgresStore({ url, schema, notify: false });
const ref = { namespace: "", agentId: "main", key: "agent:main:killed" };
if ((await store.load(ref)) === null) await store.save(ref, { sessionId: "killed" }, { ifRevision: null });

async function* content(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += 65_536) yield bytes.subarray(at, at + 65_536);
}

for (;;) {
  const file = await store.files.put(ref, content(randomBytes(900_000)));
  process.stdout.write(`put ${file.id}\n`);
  const blocks = [{ type: "file", fileId: file.id, mediaType: "application/pdf" }];
  await store.append(ref, [{ type: "message", message: { role: "user", content: blocks } }]);
  process.stdout.write(`append ${file.id}\n`);
}
