import { checkpointSettings } from "@throughline/checkpoint/internal";
import { compactionSettings, memoryFlushSettings } from "@throughline/compaction/internal";
import { policySettings } from "@throughline/policy/internal";
import { summarizerSettings } from "@throughline/summarizer-providers/internal";
import { chatSettings } from "./chat-settings.ts";
import { cliSettings } from "./cli-settings.ts";
import { encryptionSettings } from "./encryption-settings.ts";
import { filesSettings } from "./files-settings.ts";
import { gatewaySettings } from "./gateway-settings.ts";
import { memorySettings } from "./memory-settings.ts";
import { mcpSettings } from "./mcp-settings.ts";
import { guardSettings, inheritSettings, storeSettings, turnSettings } from "./session-tables.ts";
import { serverSettings } from "./server-settings.ts";
import { syncSettings } from "./sync-settings.ts";
import { tableOf, type SettingTable } from "./setting-definition.ts";

export const settingTables: readonly SettingTable[] = [
  cliSettings,
  chatSettings,
  tableOf(storeSettings),
  tableOf(filesSettings),
  tableOf(encryptionSettings),
  tableOf(inheritSettings),
  tableOf(turnSettings),
  tableOf(guardSettings),
  tableOf(compactionSettings),
  tableOf(summarizerSettings),
  tableOf(checkpointSettings),
  tableOf(memoryFlushSettings),
  tableOf(policySettings),
  serverSettings,
  gatewaySettings,
  mcpSettings,
  tableOf(memorySettings),
  tableOf(syncSettings),
];
