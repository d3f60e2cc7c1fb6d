// Appends records of one size to a store until it is killed, and says of each that it was acknowledged. With "thread" the
// store has a thread of its own, with "partials" behind that those of an open turn are written too.
import { flushCompileCache } from "node:module";
import process from "node:process";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createSqliteWorkerStore } from "@throughline/store-sqlite/worker";
import { openPartialTurn } from "../../../tools/partials-until-cut.ts";
import { refOf, say } from "./append-drafts.ts";

const [path = "", sizeText = "200", durabilityText = "disk", placeText = "here", partials = "none"] =
  process.argv.slice(2);
const durability = durabilityText === "process" ? "process" : "disk";
const store = placeText === "thread" ? createSqliteWorkerStore({ path }) : createSqliteStore({ path });
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
