import type { SettingValue } from "@throughline/core/internal";
import { placeText } from "./config-problem.ts";
import type { Config } from "./resolve-config.ts";
import type { Setting } from "./setting-set.ts";

/** A setting as it is shown. */
export interface ExplainedSetting {
  /** The whole path of the setting, such as `session.compaction.keepPercent`. */
  readonly key: string;
  /** `***` for what must not be shown. */
  readonly value: SettingValue;
  /** What kind of place set the value. */
  readonly source: Setting["source"];
  /** `default`, `preset goclaw-doc`, `file /home/ada/.throughline/config.json:7`, `environment NAME`, `flag --name`. */
  readonly from: string;
  /** What was written, where another value is used. */
  readonly given: SettingValue | null;
  /** The value that holds when nothing sets it; null for none. */
  readonly default: SettingValue;
}

/** Every setting with what set it, in the order they are declared, without secrets. */
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
