import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PayloadCodec, SessionStore } from "@throughline/core";
import { refused, systemClock } from "@throughline/core/internal";
import { createXorCodec } from "@throughline/store-conformance";
import { createMemoryStore } from "@throughline/store-memory";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createGatewayMetrics, noMetrics } from "../src/gateway-metrics.ts";
import { Journal } from "../src/journal.ts";
import { CallKeeper } from "../src/keep-calls.ts";
import { Recorder } from "../src/recorder.ts";
import { journaledCall } from "./journaled-call.ts";

type Code = "KEYRING_IO" | "MAIN_KEY_WRONG" | "KEY_MISSING" | "PAYLOAD_ALTERED" | "KEY_DESTROYED";

/** A codec whose keyring fails with `failure`; without a code when it is "untyped". */
class FailingCodec implements PayloadCodec {
  readonly #inner = createXorCodec();
  readonly name = this.#inner.name;
  failure: Code | "untyped" | null = null;
  failing: "journal" | "store" = "journal";
  readonly encode: PayloadCodec["encode"] = (plain, context) => {
    if (this.failing === "store" && context.part !== "journal") this.#fail();
    return this.#inner.encode(plain, context);
  };

  decode(coded: Uint8Array, context: Parameters<PayloadCodec["decode"]>[1]): Uint8Array {
    if ((this.failing === "journal") === (context.part === "journal")) this.#fail();
    return this.#inner.decode(coded, context);
  }

  #fail(): void {
    if (this.failure === null) return;
    throw this.failure === "untyped" ? new Error("The card reader is away.") : refused(this.failure, "No key.");
  }
}

let folder = "";
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "throughline-keyless-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Opened {
  readonly keeper: CallKeeper;
  readonly said: readonly { readonly message: string; readonly error: unknown }[];
  readonly rounds: () => number;
}

/** Opens a keeper whose clock jumps at each pause. */
async function opened(store: SessionStore, codec: PayloadCodec | null): Promise<Opened> {
  const said: { readonly message: string; readonly error: unknown }[] = [];
  let rounds = 0;
  const clock = {
    ...systemClock,
    nowMs: () => systemClock.nowMs() + rounds * 10_000,
    sleep: async () => {
      rounds += 1;
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
  const keeper = await CallKeeper.open({
    place: { folder, mostBytes: 1e6, codec, keepsFailed: true },
    clock,
    recorder: new Recorder({ store, clock }),
    metrics: createGatewayMetrics(noMetrics),
    log: { failed: (message, error) => void said.push({ message, error }) },
  });
  return { keeper, said, rounds: () => rounds };
}

async function storedIn(store: SessionStore): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { records } of store.read({
    namespace: "",
    agentId: "main",
    key: "agent:main:gateway:direct:t-one",
  }))
    ids.push(...records.map(({ id }) => id).filter((id) => id.startsWith("x-")));
  return ids;
}

async function journalOf(codec: PayloadCodec | null, ...ids: readonly string[]): Promise<void> {
  const journal = await Journal.open({ folder, mostBytes: 1e6, codec });
  for (const [at, id] of ids.entries()) await journal.append(journaledCall(id, at), false);
}

it.each(["KEYRING_IO", "MAIN_KEY_WRONG", "KEY_MISSING", "untyped"] as const)(
  "%s of the store's codec keeps the calls in their files, and they are stored once it works",
  async (failure) => {
    const codec = new FailingCodec();
    await journalOf(null, "call-1", "call-2");
    codec.failing = "store";
    codec.failure = failure;
    await using store = createMemoryStore({ codec });
    const { keeper, said, rounds } = await opened(store, null);
    await vi.waitFor(() => expect(rounds()).toBeGreaterThan(5));
    expect(readdirSync(folder).map((name) => name.split(".")[1])).toEqual(["call", "call"]);
    expect(said).toHaveLength(1);
    codec.failure = null;
    await expect.poll(() => keeper.calls).toBe(0);
    expect((await storedIn(store)).toSorted()).toEqual(["x-call-1", "x-call-2"]);
    await keeper.close(Promise.resolve());
  },
);

it.each(["KEYRING_IO", "MAIN_KEY_WRONG", "KEY_MISSING"] as const)(
  "%s of the journal's codec keeps the calls in their files, and they are stored once it works",
  async (failure) => {
    const codec = new FailingCodec();
    await journalOf(codec, "call-1", "call-2");
    codec.failure = failure;
    await using store = createMemoryStore();
    const { keeper, rounds } = await opened(store, codec);
    await vi.waitFor(() => expect(rounds()).toBeGreaterThan(5));
    expect(keeper.calls).toBe(2);
    codec.failure = null;
    await expect.poll(() => keeper.calls).toBe(0);
    expect((await storedIn(store)).toSorted()).toEqual(["x-call-1", "x-call-2"]);
    await keeper.close(Promise.resolve());
  },
);

it.each(["PAYLOAD_ALTERED", "KEY_DESTROYED"] as const)(
  "a file goes aside for %s, and others are stored",
  async (failure) => {
    const codec = new FailingCodec();
    await journalOf(codec, "call-1");
    await journalOf(null, "call-2");
    codec.failure = failure;
    await using store = createMemoryStore();
    const { keeper } = await opened(store, codec);
    await expect.poll(() => keeper.calls).toBe(0);
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/call-1\.call\.failed$/)]);
    expect(await storedIn(store)).toEqual(["x-call-2"]);
    await keeper.close(Promise.resolve());
  },
);

it("a gateway without the codec of the files keeps them, says what is missing, and stores the others", async () => {
  await journalOf(createXorCodec(), "call-1");
  await journalOf(null, "call-2");
  await using store = createMemoryStore();
  const { keeper, said, rounds } = await opened(store, null);
  await vi.waitFor(() => expect(rounds()).toBeGreaterThan(5));
  expect(readdirSync(folder)).toEqual([expect.stringMatching(/call-1\.call$/)]);
  expect(await storedIn(store)).toEqual(["x-call-2"]);
  expect(said).toEqual([
    {
      message: "Calls wait in files of the gateway, because a key cannot be used.",
      error: expect.objectContaining({
        message: "A call in the journal is encrypted by the codec xor-for-tests, and the gateway has no codec.",
        remedy: expect.stringContaining("spoolCodec"),
      }),
    },
  ]);
  await keeper.close(Promise.resolve());
});

it("the file of a call becomes the only copy also while its key is away", async () => {
  const codec = new FailingCodec();
  const journal = await Journal.open({ folder, mostBytes: 1e6, codec });
  const name = await journal.append(journaledCall("call-1", 1), false);
  codec.failure = "KEYRING_IO";
  await journal.retain(name, { key: "agent:main:one", sessionId: "s-one" });
  codec.failure = null;
  expect(await journal.read(name)).toEqual(journaledCall("call-1", 1));
});
