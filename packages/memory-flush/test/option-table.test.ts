import * as exported from "@throughline/memory-flush";
import { describeOptions } from "@throughline/test-kit/options";
import { flushInputTable } from "../src/decide-flush.ts";
import { flushSettingsTable } from "../src/flush-settings.ts";
import { endedFlushTable } from "../src/observe-flush.ts";
import { windowSizesTable } from "../src/reachable-thresholds.ts";

const entry = { sessionId: "one" };
const input = { entry, tokens: 1, windowTokens: 10, compactAtTokens: 8, isCompactionNext: false, nowMs: 0 };
const sizes = { windowTokens: 10, compactAtTokens: 8 };
const ended = { calls: [], failed: false };

describeOptions(
  exported,
  [
    { name: "decideFlush", table: flushInputTable, valid: input, call: (given) => exported.decideFlush(given) },
    { name: "decideFlush", table: flushSettingsTable, call: (settings) => exported.decideFlush(input, settings) },
    { name: "endFlush", table: endedFlushTable, valid: ended, call: (given) => exported.endFlush(entry, given) },
    { name: "endFlush", table: flushSettingsTable, call: (settings) => exported.endFlush(entry, ended, settings) },
    { name: "observeFlush", table: flushSettingsTable, call: (settings) => exported.observeFlush([], settings) },
    {
      name: "reachableThresholds",
      table: flushSettingsTable,
      call: (settings) => exported.reachableThresholds(settings, sizes),
    },
    {
      name: "reachableThresholds",
      table: windowSizesTable,
      valid: sizes,
      call: (given) => exported.reachableThresholds({}, given),
    },
  ],
  // `checkFlushSettings` reports what is wrong with settings; it throws nothing.
  ["checkFlushSettings", "readFlushState", "isSilentReply", "mayBecomeSilent"],
);
