import type { SettingValue } from "@throughline/core/internal";

/** Reports a value that is used differently from how it was written, because the user should see the difference. */
export interface ConfigNote {
  /**
   * States the type of the note. `alias`: the key is another name for a setting. `repaired`: another value is used,
   * because the given value could have no effect. `ignored`: the value has no effect in this configuration.
   */
  readonly kind: "alias" | "repaired" | "ignored";
  /** States the key as it was written, such as `session.compaction.keepPercent`. */
  readonly key: string;
  /** Names the setting that an alias stands for. */
  readonly meant?: string;
  /** Explains in one sentence for people what was written and which value is used. */
  readonly message: string;
  /** Holds the value that replaces the given value; only a `repaired` note has it. */
  readonly used?: SettingValue;
  /** Names the file or the environment variable; null for a default or preset value. */
  readonly path: string | null;
  /** States the line in the file, from 1; null outside a file. */
  readonly line: number | null;
}
