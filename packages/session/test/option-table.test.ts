import { sessionRef } from "@throughline/core";
import * as exported from "@throughline/session";
import { createAgentSessions } from "../src/whole-turn/agent-sessions.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { describeOptions, type CheckedCall } from "@throughline/test-kit/options";
import { sessionsCalls } from "../src/check-arguments.ts";
import { importTable } from "../src/import-messages.ts";
import { openTurnTable } from "../src/open-turn.ts";
import { appendTable, branchTable, resumeTable, sessionsTable, turnTable } from "../src/option-tables.ts";
import { transcriptTable } from "../src/transcript.ts";
import { callQueryTable, readCallsTable } from "../src/read-calls.ts";
import { checkpointsTable, compactionTable, inheritTable } from "../src/whole-turn/agent-session.ts";
import { agentSessionsTable } from "../src/whole-turn/check-options.ts";
import { createScriptedModel } from "./scripted-model.ts";

const store = createMemoryStore();
const ref = sessionRef({ key: "agent:main:main" });
const model = { chat: createScriptedModel(), modelId: "scripted", windowTokens: 200_000 };
const sessions = exported.createSessions({ store, model });
const session = await sessions.open("home");
const agents = createAgentSessions({ store, model, summarizers: [] });
const agent = await agents.open("assistant");

/** A method of what `createSessions` or `createAgentSessions` gives. */
type Method = Omit<CheckedCall, "of">;

const turns: readonly Method[] = [
  { name: "runTurn", valid: { model }, table: turnTable, call: (options) => session.runTurn("Hello", options) },
  { name: "resume", valid: { model }, table: resumeTable, call: (options) => session.resume(options) },
  {
    name: "streamTurn",
    valid: { model },
    table: turnTable,
    call: (options) => session.streamTurn("Hello", options).result,
  },
  {
    name: "streamResume",
    valid: { model },
    table: resumeTable,
    call: (options) => session.streamResume(options).result,
  },
  { name: "regenerate", valid: { model }, table: branchTable, call: (options) => session.regenerate(options) },
  { name: "edit", valid: { model }, table: branchTable, call: (options) => session.edit("r1", "Hello", options) },
  {
    name: "streamRegenerate",
    valid: { model },
    table: branchTable,
    call: (options) => session.streamRegenerate(options).result,
  },
  {
    name: "streamEdit",
    valid: { model },
    table: branchTable,
    call: (options) => session.streamEdit("r1", "Hello", options).result,
  },
  { name: "transcript", table: transcriptTable, call: (options) => session.transcript(options) },
  { name: "append", table: appendTable, call: (options) => session.append([], options) },
];

const ofAll: readonly Method[] = [
  { name: "sessions.open", table: sessionsCalls["sessions.open"], call: (options) => sessions.open("home", options) },
  { name: "sessions.list", table: sessionsCalls["sessions.list"], call: (query) => sessions.list(query) },
  {
    name: "sessions.delete",
    table: sessionsCalls["sessions.delete"],
    call: (options) => sessions.delete("home", options),
  },
  { name: "sessions.fork", table: sessionsCalls["sessions.fork"], call: (options) => sessions.fork("home", options) },
  {
    name: "sessions.rename",
    table: sessionsCalls["sessions.rename"],
    valid: { label: "home" },
    call: (options) => sessions.rename("home", options),
  },
];

const operations: readonly Method[] = [
  { name: "compact", table: compactionTable, call: (options) => agent.compact(options) },
  { name: "planCompaction", table: compactionTable, call: (options) => agent.planCompaction(options) },
  { name: "checkpoints", table: checkpointsTable, call: (options) => agent.checkpoints(options) },
  { name: "inherit", table: inheritTable, call: (options) => agent.inherit(options) },
];

describeOptions(
  exported,
  [
    {
      name: "createSessions",
      table: sessionsTable,
      valid: { store, model },
      call: (options) => exported.createSessions(options),
    },
    ...[...turns, ...ofAll].map((method) => ({ ...method, of: "createSessions" })),
    { name: "openTurn", table: openTurnTable, call: (options) => exported.openTurn(store, "home", options) },
    { name: "importMessages", table: importTable, call: (options) => exported.importMessages(store, "x", [], options) },
    { name: "readCalls", table: callQueryTable, call: (query) => exported.readCalls(store, ref, query) },
    { name: "readCalls", table: readCallsTable, call: (options) => exported.readCalls(store, ref, {}, options) },
  ],
  ["explainCalls", "rebuildCall"],
);

describeOptions({ createAgentSessions }, [
  {
    name: "createAgentSessions",
    table: agentSessionsTable,
    valid: { store, model, summarizers: [] },
    call: (options) => createAgentSessions(options),
  },
  ...operations.map((method) => ({ ...method, of: "createAgentSessions" })),
]);
