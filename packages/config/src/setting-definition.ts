import type { SettingField, SettingFragment, SettingKind, SettingValue } from "@throughline/core/internal";
import { parseConfigText, valueOfNode } from "./parse-config-text.ts";

/** An environment variable that sets a value. */
interface EnvironmentVariable {
  readonly name: string;
  /**
   * The value that any non-empty content stands for, for switches such as NO_COLOR.
   * @default the content itself, read as the setting's kind
   */
  readonly meaning?: SettingValue;
  /** Another program's: what it cannot mean here is passed over with a note. @default false */
  readonly isForeign?: boolean;
}

/** One setting with everything that can set it, as plain data. */
export interface SettingDefinition {
  /** The whole path: `session.compaction.reserveTokens`. */
  readonly key: string;
  readonly description: string;
  readonly kind: SettingKind;
  /** True for what must not be shown. @default false */
  readonly isSecret?: boolean;
  /** The first one that is set counts. */
  readonly environment: readonly EnvironmentVariable[];
  /** As the command line spells it; null when there is no flag. */
  readonly flag: string | null;
  /** False for what must be known before the file can be found. */
  readonly isFileAllowed: boolean;
  /** The value when nothing sets it; null: none. */
  readonly default: SettingValue;
}

/** The settings of one area of the program. */
export interface SettingTable {
  readonly area: string;
  readonly settings: readonly SettingDefinition[];
}

/** The settings of a package, with the variables that follow from their keys. */
export function tableOf({ area, fields }: SettingFragment): SettingTable {
  return { area, settings: fields.map((field) => definitionOf(area, field)) };
}

function definitionOf(area: string, field: SettingField): SettingDefinition {
  const key = `${area}.${field.key}`;
  const foreign = (field.foreignVariables ?? []).map((name) => ({ name, isForeign: true }));
  return {
    key,
    description: field.description,
    kind: field.kind,
    environment: [{ name: variableOf(key) }, ...foreign],
    flag: null,
    isFileAllowed: true,
    default: field.default,
  };
}

/** `session.checkpoint.turnThreshold` is THROUGHLINE_SESSION_CHECKPOINT_TURN_THRESHOLD. */
function variableOf(key: string): string {
  return `THROUGHLINE_${key.replaceAll(/([a-z])([A-Z])/g, "$1_$2").replaceAll(".", "_")}`.toUpperCase();
}

/** The values a kind takes, for messages. */
export function describeKind(kind: SettingKind): string {
  switch (kind.type) {
    case "text":
      return kind.minLength === 0 ? "text" : "text that is not empty";
    case "choice":
      return `one of ${kind.choices.join(", ")}`;
    case "boolean":
      return "true or false";
    case "integer":
      return `a whole number from ${kind.min} to ${kind.max}`;
    case "number":
      return `a number above ${kind.above} and below ${kind.below}`;
    case "list":
      return `a list of ${kind.minItems} to ${kind.maxItems}, each ${describeKind(kind.of)}`;
    case "object":
      return `an object with ${kind.fields.map(({ key, isRequired }) => (isRequired === true ? key : `${key}?`)).join(", ")}`;
    case "map":
      return `an object of at most ${kind.maxEntries} names, each ${describeKind(kind.of)}`;
    case "block":
      return `an object as ${kind.shape}`;
  }
}

/**
 * Reads the text of a flag or an environment variable; undefined when it is not of the kind. Lists stand with commas
 * between their parts, or as JSON; objects as JSON.
 */
export function parseSettingText(kind: SettingKind, text: string): SettingValue | undefined {
  switch (kind.type) {
    case "text":
      return text.length >= kind.minLength ? text : undefined;
    case "choice":
      return kind.choices.includes(text) ? text : undefined;
    case "boolean":
      if (text === "1" || text === "true") return true;
      return text === "0" || text === "false" ? false : undefined;
    case "integer": {
      if (!/^\d{1,15}$/.test(text)) return undefined;
      const value = Number(text);
      return value >= kind.min && value <= kind.max ? value : undefined;
    }
    case "number": {
      const value = /^\d{1,15}(\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
      return value > kind.above && value < kind.below ? value : undefined;
    }
    case "list": {
      if (/^\s*\[/.test(text)) return jsonOf(text);
      const values = text.split(",").map((part) => parseSettingText(kind.of, part.trim()));
      return values.includes(undefined) ? undefined : (values as readonly SettingValue[]);
    }
    case "object":
    case "map":
    case "block":
      return jsonOf(text);
  }
}

function jsonOf(text: string): SettingValue | undefined {
  try {
    return valueOfNode(parseConfigText(text, "value"));
  } catch {
    // The caller says what is allowed in its place, which tells more than where the text broke off.
    return undefined;
  }
}
