import { rmSync } from "node:fs";
import { join } from "node:path";
import type { SessionEvent } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import type { StoreUnderTest } from "@throughline/store-conformance";
import { startHolder } from "@throughline/store-conformance/internal";
import { createJsonlStore, type JsonlStoreOptions } from "@throughline/store-jsonl";
import { damageEntry } from "./damage-entry.ts";
import { faultyFiles } from "./faulty-files.ts";
import { contentsBelow, makeQuickFolder } from "./temporary-folder.ts";

const holderScript = join(import.meta.dirname, "hold-agent-lock.ts");

/** A store in a folder of its own, and what the conformance kit may do to it. */
export async function openUnderTest(given: Partial<JsonlStoreOptions> = {}): Promise<StoreUnderTest> {
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
