import { checkpointSettings } from "@throughline/checkpoint/settings";
import { compactionSettings } from "@throughline/compaction/settings";
import { memoryFlushSettings } from "@throughline/memory-flush/settings";
import { policySettings } from "@throughline/policy/settings";
import { summarizerSettings } from "@throughline/summarizer-providers/settings";
import { chatSettings } from "./chat-settings.ts";
import { cliSettings } from "./cli-settings.ts";
import { guardSettings, inheritSettings, storeSettings, turnSettings } from "./session-tables.ts";
import { tableOf, type SettingTable } from "./setting-definition.ts";

/** Every setting there is, area by area. */
export const settingTables: readonly SettingTable[] = [
  cliSettings,
  chatSettings,
  tableOf(storeSettings),
  tableOf(inheritSettings),
  tableOf(turnSettings),
  tableOf(guardSettings),
  tableOf(compactionSettings),
  tableOf(summarizerSettings),
  tableOf(checkpointSettings),
  tableOf(memoryFlushSettings),
  tableOf(policySettings),
];
