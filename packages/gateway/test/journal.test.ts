import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { encryptionForTests } from "@throughline/test-kit/encryption";
import { afterEach, expect, it } from "vitest";
import { createGatewayMetrics, noMetrics } from "../src/gateway-metrics.ts";
import { Journal } from "../src/journal.ts";
import type { JournaledCall } from "../src/journal-entry.ts";
import { CallKeeper } from "../src/keep-calls.ts";
import { Recorder } from "../src/recorder.ts";
import { callFacts as facts, journaledCall as callOf } from "./journaled-call.ts";

const folder = mkdtempSync(join(tmpdir(), "throughline-spool-"));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("a file that cannot be removed once its call is stored is reported, and the next one is stored", async () => {
  const left: string[] = [];
  const place = { folder, mostBytes: 1e6, codec: null, keepsFailed: true };
  const earlier = await Journal.open(place);
  for (const [index, id] of ["call-1", "call-2"].entries()) await earlier.append(callOf(id, index), false);
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

it("under a codec a file shows the session of its call and nothing of its text, and its text is read nowhere else", async () => {
  const codec = await encryptionForTests();
  const journal = await Journal.open({ folder, mostBytes: 1e6, codec });
  const word = "zanzibarquokka";
  const told = (id: string, at: number): JournaledCall => ({
    ...callOf(id, at),
    headers: { "throughline-session": word },
    call: { ...facts, recordId: id, startedMs: at, query: word, errorBody: word, responseHeaders: { word } },
    body: Buffer.from(word),
    reply: { type: "text/event-stream", text: word },
  });
  const names = [await journal.append(told("call-1", 1), false), await journal.append(told("call-2", 2), true)];
  const session = { key: "agent:main:one", sessionId: "s-one" };
  await journal.retain(names[0] ?? "", session);
  const bytes = names.map((name) => readFileSync(join(folder, name)));
  for (const each of bytes) expect(each.includes(word)).toBe(false);
  expect(JSON.parse(bytes[0]?.toString("utf8").split("\n")[0] ?? "")).toEqual({
    v: 2,
    scope: { namespace: "", agentId: "main", tokenId: "t" },
    key: session.key,
    session,
    recordId: "call-1",
    codec: codec.name,
  });
  expect(await journal.read(names[0] ?? "")).toEqual({ ...told("call-1", 1), key: session.key, session });
  expect(await journal.read(names[1] ?? "")).toEqual(told("call-2", 2));
  const plain = await Journal.open({ folder, mostBytes: 1e6, codec: null });
  await expect(plain.read(names[0] ?? "")).rejects.toMatchObject({ code: "CODEC_FAILED" });
  // A file from before the store was encrypted is stored, too.
  expect(await journal.read(await plain.append(callOf("call-3", 3), false))).toEqual(callOf("call-3", 3));
  // The text of one call under the head of the other, and the head with another session.
  const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = bytes;
  const bodyAt = (one: Buffer): number => one.indexOf(0x0a) + 1;
  const forged = [
    Buffer.concat([first.subarray(0, bodyAt(first)), second.subarray(bodyAt(second))]),
    Buffer.from(first.toString("latin1").replace("s-one", "s-two"), "latin1"),
    first.subarray(0, -1),
  ];
  for (const each of forged) {
    writeFileSync(join(folder, names[0] ?? ""), each);
    await expect(journal.read(names[0] ?? "")).rejects.toMatchObject({ code: "PAYLOAD_ALTERED" });
  }
  await codec.destroyKeys({ namespace: "", agentId: "main", sessionId: session.sessionId }, "asked for");
  writeFileSync(join(folder, names[0] ?? ""), first);
  await expect(journal.read(names[0] ?? "")).rejects.toMatchObject({ code: "KEY_DESTROYED" });
  expect(await journal.erase({ namespace: "", agentId: "main", key: session.key }, true)).toBe(1);
  expect(journal.has(names[0] ?? "")).toBe(false);
});
