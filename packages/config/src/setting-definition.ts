/** What values a setting takes. */
export type SettingKind =
  | { readonly type: "text"; readonly minLength: number }
  | { readonly type: "choice"; readonly choices: readonly string[] }
  | { readonly type: "boolean" }
  | { readonly type: "integer"; readonly min: number; readonly max: number };

export type SettingScalar = string | number | boolean | null;

/** An environment variable that sets a value. */
export interface EnvironmentVariable {
  readonly name: string;
  /**
   * The value that any non-empty content stands for, for switches such as NO_COLOR.
   * @default the content itself, read as the setting's kind
   */
  readonly meaning?: SettingScalar;
}

/**
 * One setting, as plain data: an area's settings can be declared by a package that knows nothing of this one, and the
 * table can be read without loading a schema library.
 */
export interface SettingDefinition {
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
  /** The value when nothing sets it; a function when it follows from settings declared before it. */
  readonly default: SettingScalar | ((values: Readonly<Record<string, SettingScalar>>) => SettingScalar);
}

/** The settings of one area. */
export interface SettingFragment {
  readonly area: string;
  readonly settings: readonly SettingDefinition[];
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
  }
}

/** Reads the text of a flag or an environment variable; undefined when it is not of the kind. */
export function parseSettingText(kind: SettingKind, text: string): SettingScalar | undefined {
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
  }
}
