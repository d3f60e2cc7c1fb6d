// Appends turns with a pause between them and a clock that watches the event loop, beside other processes doing the same.
// Prints the records it was told of, then the longest time the loop stood still outside SQLite's own commits.
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { setTimeout as wait } from "node:timers/promises";
import { createSqliteStore } from "@throughline/store-sqlite";
import { refOf, say } from "./append-drafts.ts";

const [path = "", name = "", countText = "0"] = process.argv.slice(2);
const store = createSqliteStore({ path });
const ref = refOf("shared");
await store.load(ref);
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const acknowledged: string[] = [];
for (let index = 0; index < Number(countText); index++) {
  const { records } = await store.append(ref, [say(`${name}-${index}`), say("answer")]);
  acknowledged.push(...records.map(({ seq, id }) => `${seq}:${id}`));
  await wait(1 + (index % 4));
}
delay.disable();
await store.close();
process.stdout.write(
  `${JSON.stringify({ acknowledged, maxMs: delay.max / 1e6, p99Ms: delay.percentile(99) / 1e6 })}\n`,
);
