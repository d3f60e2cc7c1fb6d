import { rmSync } from "node:fs";
import type { PayloadCodec, SessionEvent } from "@throughline/core";
import { systemClock } from "@throughline/core/node";
import { describeStoreConformance } from "@throughline/store-conformance";
import type { StoreUnderTest } from "@throughline/store-conformance";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, it } from "vitest";
import { faultyFiles } from "./faulty-files.ts";
import { contentsBelow, makeFolder } from "./temporary-folder.ts";

async function open(codec?: PayloadCodec): Promise<StoreUnderTest> {
  const root = makeFolder();
  const events: SessionEvent[] = [];
  const faults = faultyFiles();
  let aheadMs = 0;
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
  const options = { root, clock, files: faults.files, onEvent: (event: SessionEvent) => void events.push(event) };
  const openHandle = () => createJsonlStore(codec === undefined ? options : { ...options, codec });
  const handles = [openHandle()];
  const store = handles[0]!;
  return {
    store,
    reopen: async () => {
      await handles.at(-1)?.close();
      handles.push(openHandle());
      return handles.at(-1)!;
    },
    another: async () => {
      handles.push(openHandle());
      return handles.at(-1)!;
    },
    files: async () => contentsBelow(root),
    events: () => events,
    advanceClock: (deltaMs) => (aheadMs += deltaMs),
    failNextAppend: (outcome) => faults.failNext(outcome === "unknown" ? "flush" : "write", "EIO"),
    dispose: async () => {
      await Promise.all(handles.map((handle) => handle.close()));
      rmSync(root, { recursive: true, force: true });
    },
  };
}

describeStoreConformance({
  name: "store-jsonl",
  runner: { describe, it },
  open: () => open(),
  openWithCodec: (codec) => open(codec),
  model: () => createMemoryStore(),
});
