import { commandTable } from "./command-table.ts";
import type { OptionDefinition } from "./command.ts";
import { globalOptions, programDescription } from "./program.ts";

interface HelpOption {
  readonly flags: string;
  readonly description: string;
  /** The only words it takes; null: any text. */
  readonly choices: readonly string[] | null;
}

/** What the help says of a command, or of the program, for programs. */
export interface HelpDocument {
  readonly kind: "help";
  /** Null: the program itself. */
  readonly command: string | null;
  readonly description: string;
  readonly arguments: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly HelpOption[];
  readonly globalOptions: readonly HelpOption[];
  /** The commands of the program, each with the title of its group; none of a command. */
  readonly commands: readonly { readonly name: string; readonly description: string; readonly group: string }[];
  readonly examples: readonly string[];
}

export function helpDocument(name: string | null): HelpDocument {
  const definition = commandTable.find((one) => one.name === name);
  const shown = commandTable.filter(({ isHidden }) => isHidden !== true);
  return {
    kind: "help",
    command: definition?.name ?? null,
    description: definition?.description ?? programDescription,
    arguments: (definition?.arguments ?? []).map((one) => ({ name: one.name, description: one.description })),
    options: optionsOf(definition?.options ?? []),
    globalOptions: optionsOf(globalOptions),
    commands:
      definition === undefined
        ? shown.map(({ name: of, description, group }) => ({ name: of, description, group }))
        : [],
    examples: (definition?.examples ?? []).map((example) => `throughline ${example}`),
  };
}

function optionsOf(options: readonly OptionDefinition[]): readonly HelpOption[] {
  return options
    .filter(({ isHidden }) => isHidden !== true)
    .map(({ flags, description, choices }) => ({ flags, description, choices: choices ?? null }));
}
