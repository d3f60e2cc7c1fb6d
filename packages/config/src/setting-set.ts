import type { SettingValue } from "@throughline/core/internal";
import { configProblem, type ConfigPlace } from "./config-problem.ts";

/** What set a value. */
type SettingSource = "default" | "preset" | "file" | "environment" | "flag";

/** One effective value. */
export interface Setting {
  /** The whole path of the setting, such as `session.compaction.keepPercent`. */
  readonly key: string;
  /** The value in force; null when the setting has none. */
  readonly value: SettingValue;
  /** What kind of place set the value. */
  readonly source: SettingSource;
  /** The path, the variable, the flag or the preset; null for a default. */
  readonly sourceName: string | null;
  /** In the file; null elsewhere. */
  readonly line: number | null;
  /** The value that holds when nothing sets it; null for none. */
  readonly default: SettingValue;
  /** True for what must not be shown. */
  readonly isSecret: boolean;
  /** What was set, where another value is used. */
  readonly given?: SettingValue;
}

/** Settings that are being put together. */
export class SettingSet {
  readonly #settings: Map<string, Setting>;

  constructor(settings: readonly Setting[]) {
    this.#settings = new Map(settings.map((setting) => [setting.key, setting]));
  }

  get all(): readonly Setting[] {
    return [...this.#settings.values()];
  }

  get(key: string): Setting {
    const found = this.#settings.get(key);
    if (found === undefined) throw new TypeError(`there is no setting ${key}`);
    return found;
  }

  value(key: string): SettingValue {
    return this.get(key).value;
  }

  number(key: string): number {
    return Number(this.get(key).value);
  }

  /** Somebody wrote it: in the file, the environment or a flag, or by a preset. */
  isSet(key: string): boolean {
    return this.get(key).source !== "default";
  }

  /** Somebody wrote it by itself. */
  isGiven(key: string): boolean {
    return this.isSet(key) && this.get(key).source !== "preset";
  }

  place(key: string): ConfigPlace | null {
    const { sourceName, line, source } = this.get(key);
    return sourceName === null || source === "preset" ? null : { path: sourceName, line };
  }

  /** The value of a setting that nobody wrote; its source is that of the one it follows from. */
  fill(key: string, value: SettingValue, follows: string | null = null): void {
    const setting = this.get(key);
    const cause = follows === null ? setting : this.get(follows);
    const { source, sourceName, line } = cause;
    this.#settings.set(key, { ...setting, value, source, sourceName, line });
  }

  /** What would hold if nobody had written anything. */
  setDefault(key: string, value: SettingValue): void {
    this.#settings.set(key, { ...this.get(key), default: value });
  }

  /** Another value than the one that was written. */
  repair(key: string, value: SettingValue): void {
    const setting = this.get(key);
    this.#settings.set(key, { ...setting, value, given: setting.given ?? setting.value });
  }

  /** An error that names the key, its value and what would do. */
  refusal(key: string, message: string, allowed: string): Error {
    return configProblem(this.place(key), message, { key, value: this.value(key), allowed });
  }
}
