import { Command, Help, Option } from "commander";
import type { CommandDefinition, CommandInput, ListedCommand, OptionDefinition } from "./command.ts";
import { parseChoice, parseNumber } from "./option-values.ts";

/** Every command accepts these options, before or after its name. */
export const globalOptions: readonly OptionDefinition[] = [
  {
    flags: "--store <url>",
    description:
      "sqlite:FILE, jsonl:DIRECTORY, postgres://…, http://… or memory: (default: $THROUGHLINE_STORE, else the home)",
  },
  { flags: "--home <dir>", description: "directory of configuration and store (default: $THROUGHLINE_HOME)" },
  { flags: "--agent <id>", description: "the agent whose sessions are meant (default: main)" },
  { flags: "--namespace <name>", description: "the tenant within the store" },
  { flags: "--config <file>", description: "configuration file (default: config.json in the home)" },
  { flags: "--json", description: "one JSON object a line on stdout; a failure is one on stderr" },
  { flags: "--quiet", description: "nothing on stderr but failures" },
  {
    flags: "--log-level <level>",
    description: "debug, info, warn or error; debug adds the details of a failure",
    choices: ["debug", "info", "warn", "error"],
  },
  { flags: "--no-input", description: "never ask, even on a terminal" },
  { flags: "--yes", description: "take yes for the answer to every question" },
  { flags: "--timeout <ms>", description: "stop after this number of milliseconds", parse: parseNumber },
];

export const programDescription =
  "The session layer for AI agents: every turn on disk, every history valid, nothing lost.";

export interface ProgramOptions {
  readonly version: string;
  readonly commands: readonly ListedCommand[];
  /** Receives the parsed command; help and version never reach it. */
  readonly onCommand: (definition: CommandDefinition, input: CommandInput, globals: CommandInput["options"]) => void;
  readonly writeOut: (text: string) => void;
  readonly columns: number;
}

/**
 * Builds the command tree. Actions are reported instead of run, so that parsing ends before any work starts. Usage
 * errors are thrown and never end the process.
 */
export function createProgram(options: ProgramOptions): Command {
  const program = new Command("throughline");
  program
    .description(programDescription)
    .version(options.version, "--version", "print the version")
    .helpOption("-h, --help", "print this help")
    .exitOverride()
    .configureHelp({ showGlobalOptions: true, helpWidth: options.columns, minWidthToWrap: 16, formatHelp })
    .configureOutput({ writeOut: options.writeOut, writeErr: () => {} });
  for (const option of globalOptions) program.addOption(createOption(option));
  for (const definition of options.commands) addCommand(program, definition, options);
  program.addHelpCommand(
    new Command("help").argument("[command]").description("print the help of a command").helpGroup("Other:"),
  );
  program.addHelpText(
    "after",
    "\nWithout a command: chat.  A KEY is a key, an id, or the beginning of a key, id, label or title.",
  );
  return program;
}

/**
 * Begins the program's help with its commands, by name alone. Behind 14 options, and with their arguments, the first
 * commands were below the end of a screen.
 */
function formatHelp(command: Command, helper: Help): string {
  const { formatHelp: standard } = Help.prototype;
  if (command.parent !== null) return standard.call(helper, command, helper);
  const changes: Partial<Help> = { visibleOptions: () => [], subcommandTerm: (one) => one.name() };
  const byName = Object.assign(Object.create(helper) as Help, changes);
  const width = helper.longestOptionTermLength(command, helper);
  const options = helper
    .visibleOptions(command)
    .map((option) => helper.formatItem(helper.optionTerm(option), width, helper.optionDescription(option), helper));
  return [standard.call(byName, command, byName), "Options of every command:", ...options, ""].join("\n");
}

function addCommand(program: Command, definition: ListedCommand, { onCommand }: ProgramOptions): void {
  const command = program
    .command(definition.name, { hidden: definition.isHidden === true })
    .helpGroup(`${definition.group}:`)
    .description(definition.description);
  for (const { name, description } of definition.arguments) command.argument(name, description);
  for (const option of definition.options) command.addOption(createOption(option));
  const examples = definition.examples.map((example) => `  $ throughline ${example}`);
  command.addHelpText("after", `\nExamples:\n${examples.join("\n")}`);
  command.action(() => {
    onCommand(definition, { arguments: command.args, options: command.opts() }, program.opts());
  });
}

function createOption({ flags, description, parse, choices, isHidden, isRepeatable }: OptionDefinition): Option {
  const option = new Option(flags, description).hideHelp(isHidden === true);
  if (isRepeatable === true)
    return option.argParser((text, earlier: readonly string[] = []): readonly string[] => [...earlier, text]);
  const parser = choices === undefined ? parse : parseChoice(...choices);
  return parser === undefined ? option : option.argParser((text) => parser(text));
}
