// Appends records of one size to a store until it is killed, and prints each record that was acknowledged. With "partials"
// it also writes the partials of an open turn.
import { flushCompileCache } from "node:module";
import process from "node:process";
import { createSqliteStore } from "@throughline/store-sqlite";
import { openPartialTurn } from "../../../tools/partials-until-cut.ts";
import { refOf, say } from "./append-drafts.ts";

const [path = "", sizeText = "200", durabilityText = "disk", partials = "none"] = process.argv.slice(2);
const durability = durabilityText === "process" ? "process" : "disk";
const store = createSqliteStore({ path });
// What is killed writes no cache by itself; the next round starts in a third of the time.
flushCompileCache();
const ref = refOf("killed");
const text = "x".repeat(Number(sizeText));
if ((await store.load(ref)) === null) await store.save(ref, { sessionId: "killed" }, { ifRevision: null });
const turn = partials === "partials" ? await openPartialTurn(store) : null;
for (let index = 0; ; index++) {
  const { records } = await store.append(ref, [say(`first ${text}`), say(`second ${text}`)], { durability });
  process.stdout.write(`${records.map(({ seq, id }) => `${seq}:${id}`).join(" ")}\n`);
  if (turn !== null && index === 0) process.stdout.write(`${turn.word}\n`);
  for (let each = 0; turn !== null && each < 3; each++) process.stdout.write(`${await turn.writeNext()}\n`);
}
