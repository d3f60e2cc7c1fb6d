import process from "node:process";
import { sessionRef, userMessage } from "@throughline/core";
import { openRedisStore } from "../src/redis-store.ts";

// Appends messages to the session that other processes write to as well, and prints each that was acknowledged.
const [url = "", name = "", count = "0"] = process.argv.slice(2);
const store = await openRedisStore({ url });
const ref = sessionRef({ key: "agent:main:shared" });
for (let index = 0; index < Number(count); index++) {
  const text = `${name}-${index}`;
  const { records } = await store.append(ref, [userMessage(text)], { idempotencyKey: text, isNewKey: true });
  process.stdout.write(`${records[0]?.seq} ${text}\n`);
}
await store.close();
