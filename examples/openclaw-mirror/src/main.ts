// Puts a message that was delivered outside a run into a session of an OpenClaw state folder, by OpenClaw's function names.
// THROUGHLINE_HOME=DIRECTORY node --conditions=@throughline/source src/main.ts agent:main:main "Your build is done."
import process from "node:process";
import { isRecordOfType, sessionRef } from "@throughline/core";
import {
  appendAssistantMessageToSessionTranscript,
  loadSessionStore,
  resolveDefaultSessionStorePath,
  updateLastRoute,
} from "@throughline/openclaw-compat";
import { createJsonlStore } from "@throughline/store-jsonl";

const [sessionKey = "agent:main:main", text = "Your build is done."] = process.argv.slice(2);
const { agentId } = sessionRef({ key: sessionKey });
const storePath = resolveDefaultSessionStorePath(agentId);
const stateDir = storePath.split("/").slice(0, -4).join("/");

for (const [key, { sessionId, label }] of Object.entries(await loadSessionStore(storePath)))
  process.stdout.write(`${key}  ${sessionId}  ${label ?? ""}\n`);

await updateLastRoute({ storePath, sessionKey, channel: "discord", to: "user:7" });
// The key makes a repeated delivery one message.
const sent = await appendAssistantMessageToSessionTranscript({ agentId, sessionKey, text, idempotencyKey: "build-1" });
if (!sent.ok) throw new Error(sent.reason);
process.stdout.write(`${sent.isDuplicate ? "already there" : "added"}: ${sent.sessionFile}\n\n`);

// The same folder is a JSON Lines store: what was just added is its last record.
const store = createJsonlStore({ root: stateDir });
for await (const { records } of store.read(sessionRef({ key: sessionKey })))
  for (const { record } of records)
    if (isRecordOfType(record, "message") && "content" in record.message)
      process.stdout.write(`${record.message.role}: ${JSON.stringify(record.message.content)}\n`);
await store.close();
