import type { SettingValue } from "@throughline/core/internal";

/** A value that is used in another way than it was written: the user should see it. */
export interface ConfigNote {
  /**
   * `alias`: another word for a setting. `repaired`: another value is used, because the one given could have no effect.
   * `ignored`: it has no effect as things stand.
   */
  readonly kind: "alias" | "repaired" | "ignored";
  readonly key: string;
  /** The setting that an alias stands for. */
  readonly meant?: string;
  readonly message: string;
  /** The value that is used in place of the given one; only of `repaired`. */
  readonly used?: SettingValue;
  /** The file or the variable; null where a default or preset is meant. */
  readonly path: string | null;
  readonly line: number | null;
}
