// A process that appends to one session and says what was acknowledged. Arguments: root, name, count, bytes, durability.
import { sessionRef } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { say } from "./say.ts";

const [root = "", name = "", count = "0", bytes = "0"] = process.argv.slice(2);
const store = createJsonlStore({ root, sessionsJson: false });
const ref = sessionRef({ key: "agent:main:main" });
const filler = "x".repeat(Number(bytes));
for (let index = 0; index < Number(count); index++) {
  const { records } = await store.append(ref, [
    { type: "message", message: { role: "user", content: `${name}-${index} ${filler}` } },
  ]);
  // Synchronous, so that nothing acknowledged is still in a buffer when the process is killed.
  say(`${index} ${records[0]?.seq}\n`);
}
await store.close();
