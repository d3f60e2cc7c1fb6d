// A process with few descriptors that uses 300 sessions of three agents at once. Argument: root.
import { sessionRef, type SessionEvent } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { say } from "./say.ts";

const [root = ""] = process.argv.slice(2);
const findings: SessionEvent[] = [];
const onEvent = (event: SessionEvent): void => void (event.name === "finding" && findings.push(event));
const store = createJsonlStore({ root, onEvent });
const refs = Array.from({ length: 300 }, (_, index) => sessionRef({ key: `agent:a${index % 3}:s${index}` }));
const durability = "process";
const saves = refs.map((ref, index) => store.save(ref, { sessionId: `s${index}` }, { ifRevision: null, durability }));
const saved = await Promise.all(saves);
const appends = refs.flatMap((ref) =>
  ["first", "second"].map((content) =>
    store.append(ref, [{ type: "message", message: { role: "user", content } }], {
      durability: content === "first" ? "disk" : durability,
    }),
  ),
);
const appended = await Promise.all(appends);
const loaded = await Promise.all(refs.map((ref) => store.load(ref)));
const texts = await Promise.all(
  refs.map(async (ref) => {
    const found: string[] = [];
    for await (const { records } of store.read(ref))
      for (const { record } of records) found.push((record["message"] as { content: string }).content);
    return found.join(" ");
  }),
);
const read = texts.filter((text) => text === "first second").length;
const removed = await Promise.all(refs.slice(0, 20).map((ref) => store.remove(ref)));
await store.close();
say(
  `${saved.length} saves, ${appended.length} appends, ${loaded.filter((state) => state?.messageCount === 2).length} loads, ` +
    `${read} reads, ${removed.length} removes, ${findings.length} findings\n`,
);
