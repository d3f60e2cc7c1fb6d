import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { afterEach, expect, it } from "vitest";
import type { EndedCall } from "../src/call-record.ts";
import { createGatewayMetrics, noMetrics } from "../src/gateway-metrics.ts";
import { Journal } from "../src/journal.ts";
import type { JournaledCall } from "../src/journal-entry.ts";
import { CallKeeper } from "../src/keep-calls.ts";
import { Recorder } from "../src/recorder.ts";

const folder = mkdtempSync(join(tmpdir(), "throughline-spool-"));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const facts: EndedCall = {
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

it("a file that cannot be removed once its call is stored is reported, and the next one is stored", async () => {
  const left: string[] = [];
  const call = (recordId: string, startedMs: number): JournaledCall => ({
    scope: { namespace: "", agentId: "main", tokenId: "t" },
    session: null,
    headers: { "throughline-session": "one" },
    mayWrite: false,
    call: { ...facts, recordId, startedMs },
    body: Buffer.from("{}"),
    reply: null,
    rebuilt: null,
  });
  const place = { folder, mostBytes: 1e6, keepsFailed: true };
  const earlier = await Journal.open(place);
  for (const [index, id] of ["call-1", "call-2"].entries()) await earlier.append(call(id, index), false);
  const [name = ""] = earlier.names;
  await using store = createMemoryStore();
  const recorder = new Recorder({
    store: new Proxy(store, {
      get(target, member): unknown {
        // What stands in its place cannot be removed, as a file in the folder of another user.
        if (member === "append" && statSync(join(folder, name)).isFile()) {
          rmSync(join(folder, name));
          mkdirSync(join(folder, name));
        }
        const value: unknown = Reflect.get(target, member);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    }),
    clock: systemClock,
  });
  const keeper = await CallKeeper.open({
    place,
    clock: systemClock,
    recorder,
    metrics: createGatewayMetrics(noMetrics),
    log: { failed: (message) => void left.push(message) },
  });
  await expect.poll(() => keeper.isWaiting).toBe(false);
  const stored: string[] = [];
  const ref = { namespace: "", agentId: "main", key: "agent:main:gateway:direct:t-one" };
  for await (const { records } of store.read(ref))
    for (const { id } of records) if (id.startsWith("x-")) stored.push(id.slice("x-".length));
  expect([stored, left]).toEqual([["call-1", "call-2"], [expect.stringMatching(/stays: "0.*call-1\.call"/)]]);
  expect(keeper.bytes).toBe(0);
  await keeper.close(Promise.resolve());
});
