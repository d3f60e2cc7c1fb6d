import { appendFileSync } from "node:fs";
import process from "node:process";
import { ThroughlineError } from "@throughline/core";
import { openEncryption } from "@throughline/encryption";

// This program writes payloads of new sessions to a file, and prints each when it is acknowledged, until it is killed.

/** Repeats what fails because another process holds the keyring for longer than a call waits, as on a busy machine. */
async function retried<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (!ThroughlineError.isInstance(error) || error.code !== "KEYRING_IO" || !error.retryable) throw error;
    }
}

const [keyring = "", payloads = "", name = ""] = process.argv.slice(2);
const codec = await retried(() => openEncryption({ keyring, mainKey: { key: Buffer.alloc(32, 7) } }));
for (let session = 0; ; session++) {
  const sessionId = `${name}-${session >> 1}`;
  const context = { namespace: "", agentId: "main", sessionId, id: `r${session}`, part: "record" } as const;
  const coded = await retried(() => codec.encode(Buffer.from(`text of ${sessionId}`), context));
  const line = `${sessionId} r${session} ${Buffer.from(coded).toString("base64")}`;
  appendFileSync(payloads, `${line}\n`, { flush: true });
  process.stdout.write(`${line}\n`);
}
