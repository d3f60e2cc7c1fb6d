import { join } from "node:path";
import type { SettingValue } from "@throughline/core/internal";
import type { ConfigNote } from "./config-note.ts";
import { configProblem, shown, unknownField } from "./config-problem.ts";
import { presets } from "./presets.ts";
import type { ConfigFile, FileValues } from "./read-config-file.ts";
import { describeKind, parseSettingText, type SettingDefinition } from "./setting-definition.ts";
import { settingTables } from "./setting-tables.ts";
import { SettingSet, type Setting } from "./setting-set.ts";
import { settleFiles } from "./settle-files.ts";
import { settleStore } from "./settle-store.ts";

/** Holds the effective settings, the source of each value, and notes about values that are used differently. */
export interface Config {
  /** Lists the settings in the order of declaration. */
  readonly settings: readonly Setting[];
  /** Lists the values that are used differently from how they were written, in the order they were found. */
  readonly notes: readonly ConfigNote[];
}

/** Holds the sources of settings: files, environment and flags. */
export interface ResolveConfigOptions {
  /** States the user's home directory, from which the default of `home` derives. */
  readonly userHome: string;
  /** Holds the environment variables by name; an empty variable counts as not set. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Holds the values of the command line by setting key. */
  readonly flags: Readonly<Record<string, SettingValue | undefined>>;
  /** Reads the configuration file once the home is known; null means that there is no file. */
  readonly readFile: (home: string) => ConfigFile | null;
}

/**
 * Resolves the effective settings. A flag overrides the environment, then follow the file, the preset and the default.
 * A combination that could have no effect is refused, or repaired with a note.
 * @throws {ThroughlineError} CONFIG_INVALID
 */
export async function resolveConfig(options: ResolveConfigOptions): Promise<Config> {
  const definitions = settingTables.flatMap(({ settings }) => settings);
  const notes: ConfigNote[] = [];
  const context: ResolveContext = {
    ...options,
    file: null,
    fileValues: { values: new Map(), notes: [] },
    preset: null,
    notes,
  };
  const home = oneSetting(definitionOf(definitions, "home"), context);
  const homePath = String(home.value ?? join(options.userHome, ".throughline"));
  context.file = options.readFile(homePath);
  if (context.file !== null) {
    context.fileValues = (await import("./read-config-file.ts")).readConfigFile(context.file, definitions);
    notes.push(...context.fileValues.notes);
  }
  const preset = oneSetting(definitionOf(definitions, "preset"), context);
  context.preset = preset.value === null ? null : String(preset.value);
  const settings: SettingSet = new SettingSet(definitions.map((definition) => oneSetting(definition, context)));
  await checkStructures(settings, definitions);
  settings.fill("home", homePath);
  settings.setDefault("home", join(options.userHome, ".throughline"));
  settings.setDefault("store", `sqlite:${join(homePath, "sessions.db")}`);
  settleStore(settings, options.userHome, notes);
  settleFiles(settings, isStoreIn(context.fileValues), notes);
  // Default values need no check. Skipping it keeps the packages that define these settings out of the start of a
  // program.
  if (settings.all.some(({ key, source }) => source !== "default" && isOfTurns(key))) {
    notes.push(...(await import("./settle-settings.ts")).settleSettings(settings));
  }
  return { settings: settings.all, notes };
}

function isStoreIn({ values }: FileValues): boolean {
  return ["store", "session.store", "session.storePath"].some((key) => values.has(key));
}

function isOfTurns(key: string): boolean {
  return key.startsWith("session.") || ["tools", "windowTokens", "maxOutputTokens"].includes(key);
}

interface ResolveContext extends ResolveConfigOptions {
  file: ConfigFile | null;
  fileValues: FileValues;
  preset: string | null;
  readonly notes: ConfigNote[];
}

function definitionOf(definitions: readonly SettingDefinition[], key: string): SettingDefinition {
  const found = definitions.find((definition) => definition.key === key);
  if (found === undefined) throw new TypeError(`there is no setting ${key}`);
  return found;
}

function oneSetting(definition: SettingDefinition, context: ResolveContext): Setting {
  const { key, default: fallback } = definition;
  const from = (source: Setting["source"], sourceName: string | null, value: SettingValue, line?: number): Setting => ({
    key,
    value,
    source,
    sourceName,
    line: line ?? null,
    default: fallback,
    isSecret: definition.isSecret === true,
  });
  const flag = context.flags[key];
  if (flag !== undefined) return from("flag", definition.flag, checkText(definition, definition.flag ?? key, flag));
  const variable = fromEnvironment(definition, context);
  if (variable !== null) return from("environment", variable.name, variable.value);
  const inFile = context.fileValues.values.get(key);
  if (inFile !== undefined) return from("file", context.file?.path ?? null, inFile.value, inFile.line);
  const preset = context.preset === null ? undefined : presets[context.preset]?.[key];
  return preset === undefined ? from("default", null, fallback) : from("preset", context.preset, preset);
}

function fromEnvironment(
  definition: SettingDefinition,
  { environment, notes }: ResolveContext,
): { readonly name: string; readonly value: SettingValue } | null {
  for (const { name, meaning, isForeign = false } of definition.environment) {
    const content = environment[name];
    if (content === undefined || content === "") continue;
    const read = meaning ?? parseSettingText(definition.kind, isForeign ? content.trim() : content);
    if (read === undefined && isForeign) {
      const message = `${name} is ${shown(content)}, which is not ${describeKind(definition.kind)}; it is passed over.`;
      notes.push({ kind: "ignored", key: definition.key, message, path: name, line: null });
      continue;
    }
    return { name, value: read ?? checkText(definition, name, content) };
  }
  return null;
}

/** A variable or a flag may hold a list or an object, which must pass the same checks as a value of the file. */
async function checkStructures(settings: SettingSet, definitions: readonly SettingDefinition[]): Promise<void> {
  for (const { key, kind } of definitions) {
    const { source, sourceName, value } = settings.get(key);
    const isPlain = !["list", "object", "map", "block"].includes(kind.type);
    if (isPlain || value === null || (source !== "environment" && source !== "flag")) continue;
    const problem = (await import("./read-config-file.ts")).checkValue(kind, value);
    if (problem === null) continue;
    const { path, allowed, known } = problem;
    if (known !== undefined) throw unknownField(null, sourceName, { key: `${key}${path}`, known });
    throw configProblem(null, `${sourceName}: ${key}${path} is ${shown(problem.value)}; it must be ${allowed}.`, {
      key: `${key}${path}`,
      name: sourceName,
      value: problem.value ?? null,
      allowed,
    });
  }
}

/** Flags and variables arrive as text. A flag that the parser has already converted passes unchanged. */
function checkText(definition: SettingDefinition, name: string, given: SettingValue): SettingValue {
  if (typeof given !== "string") return given;
  const value = parseSettingText(definition.kind, given);
  if (value !== undefined) return value;
  const allowed = describeKind(definition.kind);
  const hidden = definition.isSecret === true ? "***" : given;
  throw configProblem(null, `${name} is ${shown(hidden)}; it must be ${allowed}.`, {
    key: definition.key,
    name,
    value: hidden,
    allowed,
  });
}
