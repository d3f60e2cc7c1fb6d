import type { SettingField, SettingFragment, SettingKind, SettingValue } from "@throughline/core/internal";
import { parseConfigText, valueOfNode } from "./parse-config-text.ts";

interface EnvironmentVariable {
  readonly name: string;
  /**
   * Any non-empty content of the variable stands for this value, for switches such as NO_COLOR.
   * @default the content itself, read as the setting's kind
   */
  readonly meaning?: SettingValue;
  /** Another program owns the variable, so a value that is invalid here is ignored with a note. @default false */
  readonly isForeign?: boolean;
}

export interface SettingDefinition {
  /** The key is the full path: `session.compaction.reserveTokens`. */
  readonly key: string;
  readonly description: string;
  readonly kind: SettingKind;
  /** @default false */
  readonly isSecret?: boolean;
  /** The first variable that is set counts. */
  readonly environment: readonly EnvironmentVariable[];
  /** The command line spells the flag this way; null means no flag. */
  readonly flag: string | null;
  /** False marks a setting that must be known before the file can be found. */
  readonly isFileAllowed: boolean;
  /** The value applies when no source sets the setting; null means no value. */
  readonly default: SettingValue;
}

export interface SettingTable {
  readonly area: string;
  readonly settings: readonly SettingDefinition[];
}

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

/** `session.checkpoint.turnThreshold` becomes THROUGHLINE_SESSION_CHECKPOINT_TURN_THRESHOLD. */
export function variableOf(key: string): string {
  return `THROUGHLINE_${key.replaceAll(/([a-z])([A-Z])/g, "$1_$2").replaceAll(".", "_")}`.toUpperCase();
}

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
 * Reads the text of a flag or an environment variable; undefined when the text does not fit the kind. Lists are
 * separated by commas or written as JSON; objects are JSON.
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
    // The caller states the allowed values instead, which helps more than the position of a syntax error.
    return undefined;
  }
}
