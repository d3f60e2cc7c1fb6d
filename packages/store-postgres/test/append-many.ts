// Appends so many records to one session beside other processes doing the same, and says what it was told.
import process from "node:process";
import { createPostgresStore } from "@throughline/store-postgres";
import { ThroughlineError } from "@throughline/core";

const [url = "", schema = "", name = "", countText = "0", keysText = "1"] = process.argv.slice(2);
const store = createPostgresStore({ url, schema, maxConnections: 2, notify: false });
const keys = Number(keysText);
for (let index = 0; index < Number(countText); index++) {
  const ref = { namespace: "", agentId: "main", key: `agent:main:shared-${index % keys}` };
  const drafts = [1, 2].map((each) => ({
    type: "message",
    message: { role: "user", content: `${name}-${index}-${each}` },
  }));
  const idempotencyKey = `${name}-${index}`;
  for (;;) {
    try {
      const { records } = await store.append(ref, drafts, { idempotencyKey });
      process.stdout.write(`${index % keys} ${records.map(({ seq, id }) => `${seq}:${id}`).join(" ")}\n`);
      break;
    } catch (error) {
      // Whatever the network did: the key makes it safe to ask again.
      if (!ThroughlineError.isInstance(error) || !error.retryable) throw error;
    }
  }
}
await store.close();
