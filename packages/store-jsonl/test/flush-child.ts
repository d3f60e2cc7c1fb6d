// A process that makes a session and appends to it, repeating what fails with the same key, and says what came of each call.
// Arguments: root, how often a call is repeated through each of two handles.
import { sessionRef, ThroughlineError, type AppendOptions, type SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { say } from "./say.ts";

const [root = "", tries = "2"] = process.argv.slice(2);
const ref = sessionRef({ key: "agent:main:main" });
const handles: SessionStore[] = [];

async function textsIn(store: SessionStore): Promise<readonly string[]> {
  const texts: string[] = [];
  for await (const { records } of store.read(ref))
    for (const { record } of records) texts.push((record["message"] as { content: string }).content);
  return texts;
}

/** How many of its records the session holds, as another handle sees it. */
async function countOf(text: string): Promise<number> {
  await using store = createJsonlStore({ root, index: false, sessionsJson: false });
  return (await store.load(ref)) === null ? 0 : (await textsIn(store)).filter((one) => one === text).length;
}

async function attempt(name: string, work: (store: SessionStore) => Promise<unknown>): Promise<boolean> {
  for (const store of handles)
    for (let count = 0; count < Number(tries); count++) {
      const before = await countOf(name);
      try {
        await work(store);
        say(`${name} acknowledged\n`);
        return true;
      } catch (error) {
        const outcome = ThroughlineError.isInstance(error) ? error.outcome : String(error);
        const isApplied = (await countOf(name)) > before;
        say(`${name} ${outcome}${isApplied ? ", and it is there" : ""}\n`);
      }
    }
  return false;
}

for (let count = 0; count < 2; count++) handles.push(createJsonlStore({ root, sessionsJson: false }));
const isThere = await attempt("session", async (store) => {
  if ((await store.load(ref)) === null) await store.save(ref, { sessionId: "s1" }, { ifRevision: null });
});
const append = (text: string, options: AppendOptions = {}): Promise<boolean> =>
  attempt(text, (store) =>
    store.append(ref, [{ type: "message", message: { role: "user", content: text } }], {
      idempotencyKey: text,
      ...options,
    }),
  );
if (isThere) {
  await append("a");
  await append("b", { entry: { label: "b" } });
  await attempt("entry", (store) => store.append(ref, [], { entry: { note: "entry" }, idempotencyKey: "entry" }));
  await append("c");
}
for (const store of handles) await store.close();
