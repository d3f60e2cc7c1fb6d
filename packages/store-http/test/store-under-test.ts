import type { SessionEvent, SessionRef, SessionStore } from "@throughline/core";
import type { WriteOutcome } from "@throughline/core/internal";
import type { StoreUnderTest } from "@throughline/store-conformance";
import { openHttpStore } from "@throughline/store-http";
import { startCuttingProxy, type CuttingProxy } from "./cutting-proxy.ts";
import { startServerProcess, type ServerProcess } from "./server-process.ts";
import type { ServedPlace } from "./serve-store.ts";

const token = `tl_conformancea_${"s".repeat(43)}`;
/** As often as a store asks in all. */
const attempts = 4;

/** How the place of a store is made, looked at from outside and taken away. */
export interface ServedStore {
  readonly place: ServedPlace;
  /** Whether the sessions outlive the process of the server. */
  readonly outlivesKill: boolean;
  readonly files?: () => Promise<readonly Uint8Array[]>;
  readonly damageEntry?: (ref: SessionRef) => void | Promise<void>;
  /** @default the clock of the server's process is moved */
  readonly advanceClock?: (deltaMs: number) => Promise<unknown>;
  readonly dispose: () => Promise<void>;
}

let running: ServerProcess | null = null;

/** One process serves one store after the other; a case that kills it gets another. */
function servers(): ServerProcess {
  running ??= startServerProcess();
  return running;
}

export async function endServers(): Promise<void> {
  await running?.kill();
  running = null;
}

/** A store over HTTP in front of a server in another process, behind a proxy. */
export async function openUnderTest(make: () => Promise<ServedStore>): Promise<StoreUnderTest> {
  const served = await make();
  const { place } = served;
  const open = (): Promise<number> => servers().ask<number>({ ask: "open", place, token });
  let port = await open();
  const proxy = await startCuttingProxy(port);
  const events: SessionEvent[] = [];
  const opened: SessionStore[] = [];
  const faults = createFaults(proxy);
  const openHandle = async (): Promise<SessionStore> => {
    const store = await openHttpStore({
      url: proxy.url,
      token,
      fetch: faults.fetch,
      onEvent: (event) => events.push(event),
    });
    opened.push(store);
    return store;
  };
  const store = await openHandle();
  const contents = async (): Promise<readonly Uint8Array[]> => {
    const texts = await servers().ask<readonly string[]>({ ask: "contents", port });
    return texts.map((text) => Buffer.from(text, "base64"));
  };
  return {
    store,
    reopen: async () => {
      await opened.at(-1)?.close();
      if (served.outlivesKill) {
        await endServers();
        port = await open();
        proxy.target = port;
      }
      return openHandle();
    },
    another: openHandle,
    files: served.files ?? contents,
    events: () => events,
    advanceClock: (deltaMs) =>
      faults.before(served.advanceClock?.(deltaMs) ?? servers().ask({ ask: "advance", port, deltaMs })),
    failNextAppend: (outcome) => faults.failNext(outcome),
    damageEntry: served.damageEntry ?? (({ key }) => servers().ask({ ask: "damage", port, key })),
    dispose: async () => {
      for (const each of opened) await each.close();
      await proxy.close();
      await servers().ask({ ask: "close", port });
      await served.dispose();
    },
  };
}

interface Faults {
  readonly fetch: typeof fetch;
  failNext(outcome: WriteOutcome): void;
  /** The next request waits for it. */
  before(work: Promise<unknown>): void;
}

/** Makes the proxy fail for all attempts of the next append, and work again afterwards. */
function createFaults(proxy: CuttingProxy): Faults {
  let fault: WriteOutcome | null = null;
  let left = 0;
  let pending: Promise<unknown> = Promise.resolve();
  return {
    failNext(outcome) {
      fault = outcome;
      left = attempts;
    },
    before: (work) => void (pending = work),
    async fetch(input, init) {
      await pending;
      const isAppend = init?.method === "POST" && String(input).includes("/records");
      if (fault === null || !isAppend) return globalThis.fetch(input, init);
      if (fault === "not-applied") await proxy.refuse();
      else proxy.cutsAnswers = true;
      // A moment for the connections that were ended to be seen as such.
      await new Promise((resolve) => setTimeout(resolve, 20));
      try {
        return await globalThis.fetch(input, init);
      } finally {
        left -= 1;
        if (left === 0) {
          fault = null;
          proxy.cutsAnswers = false;
          await proxy.accept();
        }
      }
    },
  };
}
