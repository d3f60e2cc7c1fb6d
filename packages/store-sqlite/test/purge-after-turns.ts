// Purges a session right after turns that came without a pause, and says so. Nothing else keeps the process alive.
import process from "node:process";
import { createSqliteStore } from "@throughline/store-sqlite";
import { refOf, say } from "./append-drafts.ts";

const [path = ""] = process.argv.slice(2);
/** By then what is behind is filled in between turns, with pauses. */
const turnsMs = 2500;

const store = createSqliteStore({ path });
for (const name of ["a", "b"]) await store.save(refOf(name), { sessionId: name }, { ifRevision: null });
for (const begunMs = Date.now(); Date.now() - begunMs < turnsMs;)
  for (const name of ["a", "b"])
    await store.append(
      refOf(name),
      Array.from({ length: 20 }, () => say("a word of many")),
      { durability: "process" },
    );
await store.remove(refOf("a"), { purge: true });
process.stdout.write("purged");
