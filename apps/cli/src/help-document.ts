import { commandTable } from "./command-table.ts";
import type { OptionDefinition } from "./command.ts";
import { globalOptions, programDescription } from "./program.ts";

interface HelpOption {
  readonly flags: string;
  readonly description: string;
  /** Limits the accepted words; null accepts any text. */
  readonly choices: readonly string[] | null;
}

export interface HelpDocument {
  readonly kind: "help";
  /** Null for the program itself. */
  readonly command: string | null;
  readonly description: string;
  readonly arguments: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly HelpOption[];
  readonly globalOptions: readonly HelpOption[];
  /** Lists the program's commands with their group titles; empty in the help of one command. */
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
