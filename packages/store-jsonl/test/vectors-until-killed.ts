import process from "node:process";
import { sessionRef } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { planted } from "./planted-vector.ts";

// Puts, redacts or purges what has vectors, and is killed once it was acknowledged: no handle is closed.
const [root = "", work = ""] = process.argv.slice(2);
const store = createJsonlStore({ root });
const ref = sessionRef({ key: "agent:main:a" });
const model = "test/model@64";
if (work === "put") {
  await store.save(ref, { sessionId: "a" }, { ifRevision: null });
  const drafts = [1, 2].map((seq) => ({
    type: "message",
    id: `a-${seq}`,
    message: { role: "user", content: `zanzibara${seq}` },
  }));
  await store.append(ref, drafts);
  const found = await store.vectors?.pending({ namespace: "", agentId: "main" }, { model });
  const [range] = found?.ranges ?? [];
  if (range === undefined) throw new Error("nothing is pending");
  const vectors = [1, 2].map((seq) => ({ firstSeq: seq, lastSeq: seq, part: 0, vector: planted(100 + seq) }));
  await store.vectors?.put(ref, { model, mark: range.mark, fromSeq: 1, toSeq: 2, resumeSeq: 2, vectors });
}
if (work === "redact") await store.redact(ref, ["a-1"], { reason: "test" });
if (work === "purge") await store.remove(ref, { purge: true });
process.kill(process.pid, "SIGKILL");
