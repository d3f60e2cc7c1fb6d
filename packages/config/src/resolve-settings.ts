import { ThroughlineError } from "@throughline/core";
import { chatSettings } from "./chat-settings.ts";
import { cliSettings } from "./cli-settings.ts";
import type { ConfigFile } from "./read-config-file.ts";
import { describeKind, parseSettingText } from "./setting-definition.ts";
import type { SettingDefinition, SettingFragment, SettingScalar } from "./setting-definition.ts";

/** What set a value. */
export type SettingSource = "default" | "file" | "environment" | "flag";

/** One effective value. */
export interface Setting {
  readonly key: string;
  readonly value: SettingScalar;
  readonly source: SettingSource;
  /** The path, the variable or the flag; null for a default. */
  readonly sourceName: string | null;
  readonly default: SettingScalar;
  /** True for what must not be shown. */
  readonly isSecret: boolean;
}

export interface ResolveSettingsOptions {
  /** The user's own directory, from which `home` follows. */
  readonly userHome: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** By setting key, as the command line gave them. */
  readonly flags: Readonly<Record<string, SettingScalar | undefined>>;
  /** Called once the home is known; null when there is no file. */
  readonly readFile: (home: string) => ConfigFile | null;
  /** @default the settings of the command line and of conversations */
  readonly fragments?: readonly SettingFragment[];
}

/**
 * The effective settings, in the order they are declared. A flag wins over the environment, that over the file, that
 * over the default.
 * @throws {ThroughlineError} CONFIG_INVALID
 */
export async function resolveSettings(options: ResolveSettingsOptions): Promise<readonly Setting[]> {
  const definitions = (options.fragments ?? [cliSettings, chatSettings]).flatMap((fragment) => fragment.settings);
  const settings: Setting[] = [];
  const values: Record<string, SettingScalar> = { userHome: options.userHome };
  let file: ConfigFile | null = null;
  let fileValues: ReadonlyMap<string, SettingScalar> | null = null;
  for (const definition of definitions) {
    if (definition.isFileAllowed && fileValues === null) {
      file = options.readFile(String(values["home"] ?? ""));
      fileValues =
        file === null ? new Map() : (await import("./read-config-file.ts")).readConfigFile(file, definitions);
    }
    const setting = resolveOne(definition, options, values, file, fileValues);
    values[definition.key] = setting.value;
    settings.push(setting);
  }
  return settings;
}

function resolveOne(
  definition: SettingDefinition,
  { flags, environment }: ResolveSettingsOptions,
  values: Readonly<Record<string, SettingScalar>>,
  file: ConfigFile | null,
  fileValues: ReadonlyMap<string, SettingScalar> | null,
): Setting {
  const { key } = definition;
  const fallback = typeof definition.default === "function" ? definition.default(values) : definition.default;
  const from = (source: SettingSource, sourceName: string | null, value: SettingScalar): Setting => ({
    key,
    value,
    source,
    sourceName,
    default: fallback,
    isSecret: definition.isSecret === true,
  });
  const flag = flags[key];
  if (flag !== undefined) return from("flag", definition.flag, checkText(definition, definition.flag ?? key, flag));
  for (const variable of definition.environment) {
    const content = environment[variable.name];
    if (content === undefined || content === "") continue;
    const value = variable.meaning ?? checkText(definition, variable.name, content);
    return from("environment", variable.name, value);
  }
  const inFile = fileValues?.get(key);
  return inFile === undefined ? from("default", null, fallback) : from("file", file?.path ?? null, inFile);
}

/** Flags and variables arrive as text; a flag that the parser has turned into a value already is taken as it is. */
function checkText(definition: SettingDefinition, name: string, given: SettingScalar): SettingScalar {
  if (typeof given !== "string") return given;
  const value = parseSettingText(definition.kind, given);
  if (value !== undefined) return value;
  const allowed = describeKind(definition.kind);
  throw new ThroughlineError("CONFIG_INVALID", `${name} is ${JSON.stringify(given)}; it must be ${allowed}.`, {
    details: { key: definition.key, name, value: given, allowed },
  });
}
