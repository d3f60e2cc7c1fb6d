/** This phrase occurs once in the imported sessions, so the demonstration can search for it. */
export const searchedPhrase = "harbour lights";

/** Builds an OpenClaw state directory by path: one intact session, and one with a torn line and an unanswered call. */
export function foreignStateDirectory(): ReadonlyMap<string, string> {
  const watch = "6a1f0c4e-0000-4000-8000-000000000001";
  const storm = "6a1f0c4e-0000-4000-8000-000000000002";
  const folder = "agents/main/sessions";
  const index = {
    "agent:main:discord:direct:keeper": {
      sessionId: watch,
      updatedAt: 1_767_265_200_000,
      label: "Keeper",
      chatType: "direct",
      channel: "discord",
    },
    "agent:main:discord:group:42": {
      sessionId: storm,
      updatedAt: 1_767_268_800_000,
      chatType: "group",
      unknownToUs: { kept: true },
    },
  };
  return new Map([
    [`${folder}/sessions.json`, JSON.stringify(index, null, 2)],
    [`${folder}/${watch}.jsonl`, transcript(watch, keeperLines)],
    // The line is cut as a crash leaves it, and the call has no result.
    [`${folder}/${storm}.jsonl`, transcript(storm, stormLines).replace('{"type":"message","id":"s3"', '{"type":"mess')],
  ]);
}

const keeperLines: readonly object[] = [
  record("k1", null, { role: "user", content: `Please note when the ${searchedPhrase} are lit.` }),
  record("k2", "k1", { role: "assistant", content: [{ type: "text", text: "Noted: at dusk." }], stopReason: "stop" }),
  record("k3", "k2", { role: "user", content: "And when are they put out?" }),
];

const stormLines: readonly object[] = [
  record("s1", null, { role: "user", content: "Is a storm coming?" }),
  record("s2", "s1", {
    role: "assistant",
    content: [{ type: "toolCall", id: "call_storm", name: "forecast", arguments: { hours: 12 } }],
    stopReason: "toolUse",
  }),
  record("s3", "s2", { role: "user", content: "Hello?" }),
  record("s4", "s2", { role: "user", content: "Are you there?" }),
];

function transcript(sessionId: string, records: readonly object[]): string {
  const header = {
    type: "session",
    version: 3,
    id: sessionId,
    timestamp: "2026-01-01T10:00:00.000Z",
    cwd: "/home/keeper",
  };
  return [header, ...records].map((line) => `${JSON.stringify(line)}\n`).join("");
}

function record(id: string, parentId: string | null, content: object): object {
  return { type: "message", id, parentId, timestamp: "2026-01-01T10:00:01.000Z", message: content };
}
