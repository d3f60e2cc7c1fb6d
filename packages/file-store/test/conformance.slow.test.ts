import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMemoryStore } from "@throughline/store-memory";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describeStoreConformance, type StoreUnderTest } from "@throughline/store-conformance";
import type { Clock, PayloadCodec, SessionEvent, SessionEventListener, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { withFileStore } from "@throughline/file-store";
import { afterAll } from "vitest";
import { kitRunner } from "../../../tools/kit-runner.ts";
import { isLongRun } from "../../../tools/test-size.ts";
import { type S3Process, startS3Process } from "./s3-process.ts";

let started: Promise<S3Process> | null = null;
afterAll(async () => (await started)?.end());

/** The store whose files are outside: how a handle of it is opened, and what is kept of it. */
interface Inner {
  open(options: {
    readonly clock: Clock;
    readonly onEvent: SessionEventListener;
    readonly codec?: PayloadCodec;
  }): SessionStore;
  bytes(): readonly Uint8Array[];
  remove(): void;
}

function inMemory(): Inner {
  const data = createMemoryData();
  return {
    open: (options) => createMemoryStore({ data, ...options }),
    bytes: () => keptBytes(data.sessions),
    remove: () => undefined,
  };
}

function inSqlite(): Inner {
  const folder = mkdtempSync(join(tmpdir(), "throughline-objects-"));
  return {
    open: (options) => createSqliteStore({ path: join(folder, "store.db"), ...options }),
    bytes: () => readdirSync(folder).map((name) => readFileSync(join(folder, name))),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function open(inner: Inner, codec?: PayloadCodec): Promise<StoreUnderTest> {
  const s3 = await (started ??= startS3Process());
  await s3.ask({ clear: true, faults: [] });
  const events: SessionEvent[] = [];
  let aheadMs = 0;
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
  const coded = codec === undefined ? {} : { codec };
  const opened: SessionStore[] = [];
  const openHandle = (): SessionStore => {
    const onEvent = (event: SessionEvent): void => void events.push(event);
    const store = withFileStore(inner.open({ clock, onEvent, ...coded }), { files: s3.fileStore(), ...coded });
    opened.push(store);
    return store;
  };
  let store = openHandle();
  return {
    store,
    reopen: async () => {
      await store.close();
      store = openHandle();
      return store;
    },
    another: async () => openHandle(),
    files: async () => [...(await s3.ask()).objects.map(({ text }) => Buffer.from(text, "base64")), ...inner.bytes()],
    events: () => events,
    advanceClock: async (deltaMs) => {
      aheadMs += deltaMs;
      await s3.ask({ aheadMs: deltaMs });
    },
    dispose: async () => {
      for (const each of opened) await each.close();
      inner.remove();
    },
  };
}

/** The records of the store in memory, as bytes. */
function keptBytes(value: unknown): Uint8Array[] {
  if (value instanceof Uint8Array) return [value];
  if (typeof value === "string") return [Buffer.from(value), Buffer.from(value.slice(1), "base64")];
  if (value instanceof Map || value instanceof Set) return [...value].flatMap(keptBytes);
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(keptBytes);
}

/** What files outside of the store can change. All other cases run on the store alone, and here in the long tier. */
const dependsOnFiles =
  /^(?:codec|copies|durability|files|fork|lifecycle|maintenance|manifest|move|redact|redacted-texts|remove)\//;

for (const [name, inner] of [
  ["store-memory", inMemory],
  ["store-sqlite", inSqlite],
] as const)
  describeStoreConformance({
    name: `${name} with files over S3`,
    runner: {
      ...kitRunner,
      it: (title, body) => (isLongRun || dependsOnFiles.test(title) ? kitRunner.it(title, body) : undefined),
    },
    open: () => open(inner()),
    openWithCodec: (codec) => open(inner(), codec),
  });
