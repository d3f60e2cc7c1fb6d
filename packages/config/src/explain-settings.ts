import type { SettingValue } from "@throughline/core/internal";
import { placeText } from "./config-problem.ts";
import type { Config } from "./resolve-config.ts";
import type { Setting } from "./setting-set.ts";

/** Describes a setting and its source for display. */
export interface ExplainedSetting {
  /** States the full path of the setting, such as `session.compaction.keepPercent`. */
  readonly key: string;
  /** Holds the value, or `***` for a secret. */
  readonly value: SettingValue;
  /** States what kind of source set the value. */
  readonly source: Setting["source"];
  /**
   * Names the source: `default`, `preset goclaw-doc`, `file /home/ada/.throughline/config.json:7`, `environment NAME`,
   * `flag --name`.
   */
  readonly from: string;
  /** Holds the written value when another value is used, else null. */
  readonly given: SettingValue | null;
  /** Holds the value that applies when no source sets the setting; null for none. */
  readonly default: SettingValue;
}

/** Lists every setting with its source, in the order of declaration. Secrets are masked. */
export function explainSettings({ settings }: Config): readonly ExplainedSetting[] {
  return settings.map(({ key, value, source, sourceName, line, default: fallback, isSecret, given }) => ({
    key,
    value: isSecret && value !== null ? "***" : value,
    source,
    from: sourceName === null ? source : `${source} ${placeText({ path: sourceName, line })}`,
    given: given ?? null,
    default: fallback,
  }));
}
