/** Types a setting that is not a list or an object. */
type SettingScalar = string | number | boolean | null;
/** A setting holds JSON; null stands for no value. */
export type SettingValue = SettingScalar | readonly SettingValue[] | { readonly [field: string]: SettingValue };

export type SettingKind =
  | { readonly type: "text"; readonly minLength: number }
  | { readonly type: "choice"; readonly choices: readonly string[] }
  | { readonly type: "boolean" }
  | { readonly type: "integer"; readonly min: number; readonly max: number }
  /** Both bounds are exclusive. */
  | { readonly type: "number"; readonly above: number; readonly below: number }
  | { readonly type: "list"; readonly of: SettingKind; readonly minItems: number; readonly maxItems: number }
  | { readonly type: "object"; readonly fields: readonly SettingField[] }
  /** A map may have any names, and each value is of the same kind. */
  | { readonly type: "map"; readonly of: SettingKind; readonly maxEntries: number }
  /** The package that uses a block reads it; `shape` describes the block in messages. */
  | { readonly type: "block"; readonly shape: string };

export interface SettingField {
  /** The key is relative to its area; dots lead into objects. */
  readonly key: string;
  /** The description is one line for people, and a unit belongs to the key. */
  readonly description: string;
  readonly kind: SettingKind;
  /** Null means no value, and the description then states the effect. */
  readonly default: SettingValue;
  /** True means that an object in a list must have the field. @default false */
  readonly isRequired?: boolean;
  /** These variables of other programs count when Throughline's own variable is not set. @default none */
  readonly foreignVariables?: readonly string[];
}

/**
 * A package declares its settings as plain data without logic, and the program that loads the configuration reads them.
 */
export interface SettingFragment {
  /** The keys of the fields are relative to this path, such as `session.compaction`. */
  readonly area: string;
  readonly fields: readonly SettingField[];
}
