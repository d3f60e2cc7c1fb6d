// Appends turns to one session, and changes entries beside it, until it is killed or its disk is gone; says of each that it
// was acknowledged: a record as <seq>:<id>, a change of the entry as entry:<life>-<number>, a session made as session:<id>.
// Arguments: root, bytes of a text, durability, "with" or "without" index.db and sessions.json, "partials" to write those of
// an open turn too.
import { flushCompileCache } from "node:module";
import process from "node:process";
import { sessionRef } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { openPartialTurn } from "../../../tools/partials-until-cut.ts";
import { say } from "./say.ts";

const [root = "", sizeText = "200", durabilityText = "disk", view = "with", partials = "none"] = process.argv.slice(2);
const durability = durabilityText === "process" ? "process" : "disk";
const isWith = view === "with";
const store = createJsonlStore({ root, index: isWith, sessionsJson: isWith, derivedDelayMs: 20 });
// What is killed writes no cache by itself; the next round starts in a third of the time.
flushCompileCache();
const ref = sessionRef({ key: "agent:main:cut" });
const text = "x".repeat(Number(sizeText));
const life = `${Date.now()}`;
if ((await store.load(ref)) === null) await store.save(ref, { sessionId: "cut" }, { ifRevision: null });
const turn = partials === "partials" ? await openPartialTurn(store) : null;
for (let index = 0; ; index++) {
  const drafts = ["first", "second"].map((part) => ({
    type: "message",
    message: { role: "user", content: `${part} ${text}` },
  }));
  const said: string[] = [];
  if (index % 4 === 1) {
    await store.append(ref, [], { entry: { changed: `${life}-${index}` }, durability });
    said.push(`entry:${life}-${index}`);
  } else if (index % 16 === 2) {
    const sessionId = `s-${life}-${index}`;
    const made = sessionRef({ key: `agent:main:${sessionId}` });
    await store.save(made, { sessionId }, { ifRevision: null, durability });
    said.push(`session:${sessionId}`);
  } else {
    const { records } = await store.append(ref, drafts, { durability });
    said.push(...records.map(({ seq, id }) => `${seq}:${id}`));
  }
  if (turn !== null && index === 0) said.push(turn.word);
  // Several for each change: the power goes soon.
  for (let each = 0; turn !== null && each < 3; each++) said.push(await turn.writeNext());
  say(`${said.join(" ")}\n`);
}
