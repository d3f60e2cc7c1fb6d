import { existsSync } from "node:fs";
import { join } from "node:path";
import { createMemoryStore } from "@throughline/store-memory";
import * as exported from "@throughline/openclaw-compat";
import { describe, expect, it } from "vitest";
import { describeOptions, type CheckedCall } from "@throughline/test-kit/options";
import { paramTables, type CheckedFunction } from "../src/check-params.ts";
import { sessionsTable } from "../src/openclaw-sessions.ts";

const state = join(import.meta.dirname, "no-such-state");
const storePath = join(state, "agents/main/sessions/sessions.json");
const sessionKey = "agent:main:main";
const place = { storePath, sessionKey };
const nothing = (): undefined => undefined;

function row(
  name: CheckedFunction,
  call: CheckedCall["call"],
  valid: Readonly<Record<string, unknown>> = {},
): CheckedCall {
  return { name, table: paramTables[name][1], valid, call };
}

describeOptions(
  exported,
  [
    {
      name: "createOpenclawSessions",
      table: sessionsTable,
      valid: { store: createMemoryStore(), stateDir: state, homeDir: "/home/u" },
      call: (options) => exported.createOpenclawSessions(options),
    },
    row("loadSessionStore", (options) => exported.loadSessionStore(storePath, options)),
    row("updateSessionStore", (options) => exported.updateSessionStore(storePath, nothing, options)),
    row("withSessionStoreLock", (options) => exported.withSessionStoreLock(storePath, async () => nothing(), options)),
    row("updateSessionStoreEntry", (params) => exported.updateSessionStoreEntry(params), { ...place, update: nothing }),
    row("recordSessionMetaFromInbound", (params) => exported.recordSessionMetaFromInbound(params), {
      ...place,
      ctx: {},
    }),
    row("updateLastRoute", (params) => exported.updateLastRoute(params), place),
    row(
      "appendAssistantMessageToSessionTranscript",
      (params) => exported.appendAssistantMessageToSessionTranscript(params),
      { sessionKey },
    ),
    row("resolveStorePath", (options) => exported.resolveStorePath(undefined, options)),
    row("resolveSendPolicy", (params) => exported.resolveSendPolicy(params), { sessionKey }),
  ],
  [
    "cacheTtlFrom",
    "clearSessionStoreCacheForTest",
    "resolveDefaultSessionStorePath",
    "resolveSessionTranscriptPath",
    "resolveSessionTranscriptsDirForAgent",
    "saveSessionStore",
  ],
);

describe("parameters that are refused", () => {
  it("leave no folder behind", () => {
    expect(existsSync(state)).toBe(false);
  });
});
