// Appends so many records, says of each that it was acknowledged, and is killed with its log.
import { writeSync } from "node:fs";
import process from "node:process";
import { createSqliteStore } from "@throughline/store-sqlite";
import { refOf, say } from "./append-drafts.ts";

const [path = "", countText = "0"] = process.argv.slice(2);
const store = createSqliteStore({ path, searchFill: "on-demand" });
const ref = refOf("a");
if ((await store.load(ref)) === null) await store.save(ref, { sessionId: "session-a" }, { ifRevision: null });
for (let each = 0; each < Number(countText); each++) {
  await store.append(ref, [say(`n${each} ${"x".repeat(3000)}`)]);
  writeSync(1, `${each}\n`);
}
process.kill(process.pid, "SIGKILL");
