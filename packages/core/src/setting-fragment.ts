/** A value without parts. */
type SettingScalar = string | number | boolean | null;
/** A value of a setting as JSON has it: a scalar, a list or an object; null stands for none. */
export type SettingValue = SettingScalar | readonly SettingValue[] | { readonly [field: string]: SettingValue };

/** What values a setting takes. */
export type SettingKind =
  | { readonly type: "text"; readonly minLength: number }
  | { readonly type: "choice"; readonly choices: readonly string[] }
  | { readonly type: "boolean" }
  | { readonly type: "integer"; readonly min: number; readonly max: number }
  /** Above `above`, below `below`. */
  | { readonly type: "number"; readonly above: number; readonly below: number }
  | { readonly type: "list"; readonly of: SettingKind; readonly minItems: number; readonly maxItems: number }
  | { readonly type: "object"; readonly fields: readonly SettingField[] }
  /** Any names, each with a value of one kind. */
  | { readonly type: "map"; readonly of: SettingKind; readonly maxEntries: number }
  /** Read by whoever uses it; `shape` says in words what it must be. */
  | { readonly type: "block"; readonly shape: string };

/** One setting, as plain data. */
export interface SettingField {
  /** Within its area; dots lead into objects. */
  readonly key: string;
  /** One line for people; a unit, where there is one, is in the key. */
  readonly description: string;
  readonly kind: SettingKind;
  /** Null: none, and the description says what holds then. */
  readonly default: SettingValue;
  /** In an object of a list: true when it must be there. @default false */
  readonly isRequired?: boolean;
  /** Variables of other programs that count when ours is not set. @default none */
  readonly foreignVariables?: readonly string[];
}

/** The settings a package has, declared by it and read by whoever loads configuration. Plain data, no logic. */
export interface SettingFragment {
  /** Where they stand: `session.compaction`. */
  readonly area: string;
  readonly fields: readonly SettingField[];
}
