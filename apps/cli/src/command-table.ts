import type { CommandDefinition, ListedCommand } from "./command.ts";
import { lifeCycleCommands } from "./command-groups/life-cycle-commands.ts";
import { conversationCommands, programCommands } from "./command-groups/own-commands.ts";
import { readingCommands } from "./command-groups/reading-commands.ts";
import { summaryCommands } from "./command-groups/summary-commands.ts";
import { serverCommands } from "./command-groups/server-commands.ts";
import { storeCommands } from "./command-groups/store-commands.ts";
import { transferCommands } from "./command-groups/transfer-commands.ts";

/** Most users start with these commands, so the help lists them first, in this order. */
const firstCommands = ["chat", "sessions", "search", "import", "show", "ui"];

const groups: readonly (readonly [title: string, commands: readonly CommandDefinition[]])[] = [
  ["Read", readingCommands],
  ["Move", transferCommands],
  ["Summarize", summaryCommands],
  ["Manage", lifeCycleCommands],
  ["Store", storeCommands],
  ["Serve", serverCommands],
  ["Other", [...conversationCommands, ...programCommands]],
];

/** The order is the one that the help prints. */
export const commandTable: readonly ListedCommand[] = [
  ...firstCommands.flatMap((name) => grouped("Start here", (command) => command.name === name)),
  ...groups.flatMap(([title, commands]) =>
    grouped(title, (command) => commands.includes(command) && !firstCommands.includes(command.name)),
  ),
];

function grouped(group: string, isOfGroup: (command: CommandDefinition) => boolean): readonly ListedCommand[] {
  return groups.flatMap(([, commands]) => commands.filter(isOfGroup)).map((command) => ({ ...command, group }));
}
