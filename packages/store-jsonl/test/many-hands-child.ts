// A process that appends to one session, forks it, redacts in it, or counts in its entry, again and again. Arguments: root, what, name, rounds.
// Says on stdout what was acknowledged, a line each.
import { hasErrorCode, sessionRef } from "@throughline/core";
import { updateEntry } from "@throughline/core/internal";
import { createJsonlStore } from "@throughline/store-jsonl";
import { say } from "./say.ts";

const [root = "", what = "", name = "", rounds = "0"] = process.argv.slice(2);
const store = createJsonlStore({ root, sessionsJson: false });
const ref = sessionRef({ key: "agent:main:main" });
for (let round = 0; round < Number(rounds); round++) {
  if (what === "append") {
    const drafts = ["a", "b"].map((part) => ({
      id: `${name}-${round}-${part}`,
      type: "message",
      message: { role: "user", content: `${name}-${round}-${part}` },
    }));
    const { records } = await store.append(ref, drafts);
    for (const { seq, id } of records) say(`${seq} ${id}\n`);
  } else if (what === "fork") {
    const sessionId = `${name}-${round}`;
    const target = sessionRef({ key: `agent:main:${sessionId}` });
    const state = await store.fork?.fork(ref, target, { sessionId });
    say(`${sessionId} ${state?.head.lastSeq}\n`);
  } else if (what === "count") {
    await updateEntry(store, ref, (entry) => ({ ...entry, count: Number(entry["count"] ?? 0) + 1 }));
  } else {
    const id = `secret-${round}`;
    try {
      await store.redact(ref, [id], { reason: "test" });
      say(`${id}\n`);
    } catch (error) {
      if (!hasErrorCode(error, "RECORD_NOT_FOUND")) throw error;
    }
  }
}
await store.close();
