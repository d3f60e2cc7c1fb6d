import type { EndedCall } from "../src/call-record.ts";
import type { JournaledCall } from "../src/journal-entry.ts";

export const callFacts: EndedCall = {
  recordId: "",
  api: "anthropic-messages",
  upstream: "claude",
  mode: "record",
  method: "POST",
  path: "/v1/messages",
  query: "",
  requestHeaders: {},
  responseHeaders: {},
  status: 400,
  outcome: "failed",
  startedMs: 0,
  firstByteMs: 1,
  endedMs: 2,
  requestSha256: "00",
  requestBytes: 2,
  requestEncoding: null,
  responseSha256: "00",
  responseBytes: 0,
  errorBody: null,
  unknownEvents: [],
};

export const journaledCall = (recordId: string, startedMs: number): JournaledCall => ({
  scope: { namespace: "", agentId: "main", tokenId: "t" },
  session: null,
  headers: { "throughline-session": "one" },
  mayWrite: false,
  call: { ...callFacts, recordId, startedMs },
  body: Buffer.from("{}"),
  reply: null,
  rebuilt: null,
});
