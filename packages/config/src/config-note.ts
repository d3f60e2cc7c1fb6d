import type { SettingValue } from "@throughline/core/internal";

/** A value that is used in another way than it was written: the user should see it. */
export interface ConfigNote {
  /**
   * `alias`: another word for a setting. `repaired`: another value is used, because the one given could have no effect.
   * `ignored`: it has no effect as things stand.
   */
  readonly kind: "alias" | "repaired" | "ignored";
  /** The key as it was written, such as `session.compaction.keepPercent`. */
  readonly key: string;
  /** The setting that an alias stands for. */
  readonly meant?: string;
  /** What was written and what is used, as a sentence for people. */
  readonly message: string;
  /** The value that is used in place of the given one; only of `repaired`. */
  readonly used?: SettingValue;
  /** The file or the variable; null where a default or preset is meant. */
  readonly path: string | null;
  /** The line in the file, from 1; null outside a file. */
  readonly line: number | null;
}
