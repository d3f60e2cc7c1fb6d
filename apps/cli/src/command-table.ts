import type { CommandDefinition } from "./command.ts";
import { lifeCycleCommands } from "./command-groups/life-cycle-commands.ts";
import { conversationCommands, programCommands } from "./command-groups/own-commands.ts";
import { readingCommands } from "./command-groups/reading-commands.ts";
import { summaryCommands } from "./command-groups/summary-commands.ts";
import { serverCommands } from "./command-groups/server-commands.ts";
import { storeCommands } from "./command-groups/store-commands.ts";
import { transferCommands } from "./command-groups/transfer-commands.ts";

/** Every command there is, in the order the help shows them. */
export const commandTable: readonly CommandDefinition[] = [
  ...conversationCommands,
  ...readingCommands,
  ...transferCommands,
  ...summaryCommands,
  ...lifeCycleCommands,
  ...storeCommands,
  ...serverCommands,
  ...programCommands,
];
