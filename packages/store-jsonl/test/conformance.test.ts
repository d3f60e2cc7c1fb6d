import { rmSync } from "node:fs";
import { join } from "node:path";
import type { PayloadCodec, SessionEvent } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { describeStoreConformance } from "@throughline/store-conformance";
import type { StoreUnderTest } from "@throughline/store-conformance";
import { startHolder } from "@throughline/store-conformance/internal";
import { createJsonlStore, type JsonlStoreOptions } from "@throughline/store-jsonl";
import { describe, it } from "vitest";
import { kitRunner } from "../../../tools/kit-runner.ts";
import { damageEntry } from "./damage-entry.ts";
import { faultyFiles } from "./faulty-files.ts";
import { contentsBelow, makeQuickFolder } from "./temporary-folder.ts";

const holderScript = join(import.meta.dirname, "hold-agent-lock.ts");

async function open(given: Partial<JsonlStoreOptions> = {}): Promise<StoreUnderTest> {
  const root = makeQuickFolder();
  const events: SessionEvent[] = [];
  const faults = faultyFiles();
  let aheadMs = 0;
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
  const onEvent = (event: SessionEvent): void => void events.push(event);
  const openHandle = () => createJsonlStore({ root, clock, files: faults.files, onEvent, ...given });
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
    damageEntry: (ref) => damageEntry(root, ref),
    holdElsewhere: ({ namespace, agentId }) =>
      startHolder({ scriptPath: holderScript, args: [root, namespace, agentId] }),
    dispose: async () => {
      await Promise.all(handles.map((handle) => handle.close()));
      rmSync(root, { recursive: true, force: true });
    },
  };
}

describeStoreConformance({
  name: "store-jsonl",
  runner: kitRunner,
  open: () => open(),
  openWithCodec: (codec) => open({ codec }),
});

// What the index answers otherwise: the cases of lists, and those where nothing fits the codec.
const isAboutLists = /^(?:list|codec)\//;

describeStoreConformance({
  name: "store-jsonl without an index",
  runner: { describe, it: (name, body) => (isAboutLists.test(name) ? it(name, body) : undefined) },
  open: () => open({ index: false }),
  openWithCodec: (codec: PayloadCodec) => open({ index: false, codec }),
});
