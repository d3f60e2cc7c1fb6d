import type { SettingValue } from "@throughline/core/internal";
import { configProblem, type ConfigPlace } from "./config-problem.ts";

/** Names the kinds of sources in rising precedence. */
type SettingSource = "default" | "preset" | "file" | "environment" | "flag";

/** Holds one effective value and its source. */
export interface Setting {
  /** States the full path of the setting, such as `session.compaction.keepPercent`. */
  readonly key: string;
  /** Holds the value in force; null when the setting has none. */
  readonly value: SettingValue;
  /** States what kind of source set the value. */
  readonly source: SettingSource;
  /** Names the file, the variable, the flag or the preset; null for a default. */
  readonly sourceName: string | null;
  /** States the line in the file; null elsewhere. */
  readonly line: number | null;
  /** Holds the value that applies when no source sets the setting; null for none. */
  readonly default: SettingValue;
  /** States whether the value is a secret, which must not be shown. */
  readonly isSecret: boolean;
  /** Holds the value that was set, when another value is used. */
  readonly given?: SettingValue;
}

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

  /** A value counts as set when the file, the environment, a flag or a preset wrote it. */
  isSet(key: string): boolean {
    return this.get(key).source !== "default";
  }

  /** A value counts as given when the user wrote the setting itself, not only a preset that implies it. */
  isGiven(key: string): boolean {
    return this.isSet(key) && this.get(key).source !== "preset";
  }

  place(key: string): ConfigPlace | null {
    const { sourceName, line, source } = this.get(key);
    return sourceName === null || source === "preset" ? null : { path: sourceName, line };
  }

  /** Sets a value that no source wrote. Its source becomes that of the setting it follows from. */
  fill(key: string, value: SettingValue, follows: string | null = null): void {
    const setting = this.get(key);
    const cause = follows === null ? setting : this.get(follows);
    const { source, sourceName, line } = cause;
    this.#settings.set(key, { ...setting, value, source, sourceName, line });
  }

  /** Some defaults depend on other settings, so they are set after those settings are resolved. */
  setDefault(key: string, value: SettingValue): void {
    this.#settings.set(key, { ...this.get(key), default: value });
  }

  /** Replaces a value, and keeps the written value in `given` so that users can see both. */
  repair(key: string, value: SettingValue): void {
    const setting = this.get(key);
    this.#settings.set(key, { ...setting, value, given: setting.given ?? setting.value });
  }

  refusal(key: string, message: string, allowed: string): Error {
    return configProblem(this.place(key), message, { key, value: this.value(key), allowed });
  }
}
