import { decideFlush, flushInputTable } from "../../src/memory-flush/decide-flush.ts";
import { endedFlushTable, endFlush, observeFlush } from "../../src/memory-flush/observe-flush.ts";
import { reachableThresholds, windowSizesTable } from "../../src/memory-flush/reachable-thresholds.ts";
import { describeOptions } from "@throughline/test-kit/options";
import { flushSettingsTable } from "../../src/memory-flush/flush-settings.ts";

const entry = { sessionId: "one" };
const input = { entry, tokens: 1, windowTokens: 10, compactAtTokens: 8, isCompactionNext: false, nowMs: 0 };
const sizes = { windowTokens: 10, compactAtTokens: 8 };
const ended = { calls: [], failed: false };

describeOptions({ decideFlush, endFlush, observeFlush, reachableThresholds }, [
  { name: "decideFlush", table: flushInputTable, valid: input, call: (given) => decideFlush(given) },
  { name: "decideFlush", table: flushSettingsTable, call: (settings) => decideFlush(input, settings) },
  { name: "endFlush", table: endedFlushTable, valid: ended, call: (given) => endFlush(entry, given) },
  { name: "endFlush", table: flushSettingsTable, call: (settings) => endFlush(entry, ended, settings) },
  { name: "observeFlush", table: flushSettingsTable, call: (settings) => observeFlush([], settings) },
  {
    name: "reachableThresholds",
    table: flushSettingsTable,
    call: (settings) => reachableThresholds(settings, sizes),
  },
  {
    name: "reachableThresholds",
    table: windowSizesTable,
    valid: sizes,
    call: (given) => reachableThresholds({}, given),
  },
]);
