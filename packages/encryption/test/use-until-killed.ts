import { appendFileSync } from "node:fs";
import process from "node:process";
import { openEncryption } from "@throughline/encryption";

/** Writes payloads of new sessions to a file, and prints each when it is acknowledged, until the process is killed. */
const [keyring = "", payloads = "", name = ""] = process.argv.slice(2);
const codec = await openEncryption({ keyring, mainKey: { key: Buffer.alloc(32, 7) } });
for (let session = 0; ; session++) {
  const sessionId = `${name}-${session >> 1}`;
  const context = { namespace: "", agentId: "main", sessionId, id: `r${session}`, part: "record" } as const;
  const coded = codec.encode(Buffer.from(`text of ${sessionId}`), context);
  const line = `${sessionId} r${session} ${Buffer.from(coded).toString("base64")}`;
  appendFileSync(payloads, `${line}\n`, { flush: true });
  process.stdout.write(`${line}\n`);
}
