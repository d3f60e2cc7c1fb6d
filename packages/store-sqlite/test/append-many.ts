// Appends so many records to one session beside other processes doing the same, and says what it was told.
import process from "node:process";
import { createSqliteStore } from "@throughline/store-sqlite";
import { refOf, say } from "./append-drafts.ts";

const [path = "", name = "", countText = "0"] = process.argv.slice(2);
const store = createSqliteStore({ path });
const ref = refOf("shared");
for (let index = 0; index < Number(countText); index++) {
  const { records } = await store.append(ref, [say(`${name}-${index}`)], { idempotencyKey: `${name}-${index}` });
  process.stdout.write(`${records.map(({ seq, id }) => `${seq}:${id}`).join(" ")}\n`);
}
await store.close();
