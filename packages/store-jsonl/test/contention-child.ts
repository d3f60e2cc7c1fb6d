// One of several processes at work on one session ("session") or on the entries ("entries"), until it is killed or its
// input ends. Arguments: root, what, name, "with" or "without" sessions.json. Says a line for each operation: its number and
// when it began before it begins, then what it got and when it ended, by the clock that all processes of a host share.
import process from "node:process";
import { hasErrorCode, sessionRef } from "@throughline/core";
import { updateEntry } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { counterRef, operationOf } from "./contention.ts";
import { say } from "./say.ts";

const [root = "", what = "session", name = "", view = "with"] = process.argv.slice(2);
const store = createJsonlStore({ root, sessionsJson: view === "with", lockTimeoutMs: 60_000 });
let isOver = false;
process.stdin.on("end", () => (isOver = true)).resume();

/** Two records in one batch, and beside them a field of the entry. */
async function appendRecords(index: number): Promise<number> {
  const drafts = ["a", "b"].map((part) => ({
    type: "message",
    message: { role: "user", content: `${name}-${index}-${part}` },
  }));
  const { records } = await store.append(counterRef, drafts, index % 4 === 0 ? { entry: { [name]: index } } : {});
  return records.at(-1)?.seq ?? 0;
}

/** One more than whoever was last: with so many at it, the library's own number of attempts may be used up. */
async function count(): Promise<number> {
  for (;;) {
    try {
      const { entry } = await updateEntry(store, counterRef, (old) => ({
        ...old,
        count: Number(old["count"] ?? 0) + 1,
      }));
      return Number(entry["count"]);
    } catch (error) {
      if (!hasErrorCode(error, "REVISION_CONFLICT")) throw error;
    }
  }
}

async function changeEntries(index: number): Promise<number> {
  const operation = operationOf(index);
  if (operation === "count") return count();
  if (operation === "patch") await store.append(counterRef, [], { entry: { [name]: index } });
  else {
    const ref = sessionRef({ key: `agent:main:${name}-${index}` });
    await store.save(ref, { sessionId: `${name}-${index}`, label: `${name} ${index}` }, { ifRevision: null });
  }
  return 0;
}

for (let index = 0; !isOver; index++) {
  say(`${index} ${process.hrtime.bigint()} `);
  const got = await (what === "session" ? appendRecords(index) : changeEntries(index));
  say(`${got} ${process.hrtime.bigint()}\n`);
  // The end of the input is only seen between two turns of the loop.
  await new Promise((resolve) => void setImmediate(resolve));
}
await store.close();
