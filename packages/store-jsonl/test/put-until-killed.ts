// Puts files and appends records that refer to them until it is killed, and says each that was acknowledged.
import { randomBytes } from "node:crypto";
import process from "node:process";
import { sessionRef } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { say } from "./say.ts";

const [root = ""] = process.argv.slice(2);
const store = createJsonlStore({ root });
const ref = sessionRef({ key: "agent:main:main" });
if ((await store.load(ref)) === null) await store.save(ref, { sessionId: "killed" }, { ifRevision: null });

async function* content(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += 65_536) yield bytes.subarray(at, at + 65_536);
}

for (;;) {
  const file = await store.files?.put(ref, content(randomBytes(900_000)));
  say(`put ${file?.id}\n`);
  const blocks = [{ type: "file", fileId: file?.id, mediaType: "application/pdf" }];
  await store.append(ref, [{ type: "message", message: { role: "user", content: blocks } }]);
  say(`append ${file?.id}\n`);
}
