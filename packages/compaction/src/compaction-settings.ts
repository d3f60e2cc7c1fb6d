import { optionKinds, type OptionTable } from "@throughline/core/internal";

/** Sets when a session is compacted, and how much of it stays. */
export interface CompactionSettings {
  /** Compacts before the window is full. False compacts only after an overflow or by hand. @default true */
  readonly inAdvance?: boolean;
  /** Reserves tokens for the answer and a memory flush. @default 30000 */
  readonly reserveTokens?: number;
  /** Limits the reserve from below; a quarter of the window has priority. @default 20000 */
  readonly reserveFloorTokens?: number;
  /** Compacts a session with an unknown window at this number of messages. @default 500 */
  readonly maxMessages?: number;
  /** Sets the share of the messages that stays, in percent. @default 10 */
  readonly keepPercent?: number;
  /** Sets the share of the messages that stays when no model wrote the summary, in percent. @default 20 */
  readonly emergencyKeepPercent?: number;
  /** Keeps at least this number of messages, as far as their tokens allow. @default 20 */
  readonly minMessages?: number;
  /** Keeps at least this number of tokens, but at most a quarter of the window. @default 20000 */
  readonly keepRecentTokens?: number;
  /** Limits the share of the window that the kept part takes, in percent. @default 25 */
  readonly mostKeptPercent?: number;
  /** Limits the summary, in tokens. @default 2000, at most a tenth of the window */
  readonly maxSummaryTokens?: number;
  /** Limits the list of details beside the summary, in tokens. @default 350, at most a twentieth of the window */
  readonly maxDetailTokens?: number;
  /** Cuts longer tool results in the middle before a summarizer reads them, in characters. @default 2000 */
  readonly toolResultChars?: number;
}

const { flag, number } = optionKinds;

export const compactionSettingsTable: OptionTable<CompactionSettings> = {
  inAdvance: flag,
  reserveTokens: number({ min: 0, max: 10_000_000 }),
  reserveFloorTokens: number({ min: 0, max: 10_000_000 }),
  maxMessages: number({ min: 5, max: 1_000_000 }),
  keepPercent: number({ min: 0, max: 90 }),
  emergencyKeepPercent: number({ min: 0, max: 90 }),
  minMessages: number({ min: 0, max: 10_000 }),
  keepRecentTokens: number({ min: 0, max: 10_000_000 }),
  mostKeptPercent: number({ min: 5, max: 90 }),
  maxSummaryTokens: number({ min: 100, max: 1_000_000 }),
  maxDetailTokens: number({ min: 0, max: 1_000_000 }),
  toolResultChars: number({ min: 100, max: 1_000_000 }),
};

/** Holds the settings in force for a window. */
export interface EffectiveSettings {
  /** Holds the size in tokens at which compaction is due; null when the window is unknown. */
  readonly triggerTokens: number | null;
  /** Holds the number of messages at which a session with an unknown window is compacted. */
  readonly maxMessages: number;
  /** Holds the share of the messages that stays, in percent. */
  readonly keepPercent: number;
  /** Holds the share of the messages that stays when no model wrote the summary, in percent. */
  readonly emergencyKeepPercent: number;
  /** Holds the fewest messages that stay, as far as their tokens allow. */
  readonly minMessages: number;
  /** Holds the fewest tokens of the kept part. */
  readonly keepTokens: number;
  /** Holds the most tokens of the kept part. This limit has priority over the counts of messages. */
  readonly mostKeptTokens: number;
  /** Limits the summary, in tokens. */
  readonly maxSummaryTokens: number;
  /** Limits the list of details beside the summary, in tokens. */
  readonly maxDetailTokens: number;
  /** Limits a tool result that a summarizer reads uncut, in characters. */
  readonly toolResultChars: number;
  /** Lists the settings whose configured value the floor or the window replaced. */
  readonly repairs: readonly SettingRepair[];
}

/** Describes a setting whose value could not be used. */
export interface SettingRepair {
  /** Names the setting in `CompactionSettings`. */
  readonly key: string;
  /** Holds the configured value. */
  readonly given: number;
  /** Holds the value in force. */
  readonly used: number;
  /** States why the configured value could not be used, as a phrase. */
  readonly reason: string;
}

/** Longer results lose their middle, because the ends of a result matter most. */
export const defaultToolResultChars = 2000;

const shareOfWindow = 0.25;
/** Without a known window, the kept part is limited to this multiple of `keepRecentTokens`. */
const mostWithoutWindow = 2.5;

/**
 * Fits the settings to a window, in tokens; null and 0 stand for an unknown window. The reserve and the minimum kept
 * part each take at most a quarter of the window, so that every window has room for a conversation.
 */
export function settingsForWindow(settings: CompactionSettings, windowTokens: number | null): EffectiveSettings {
  const window = windowTokens === null || windowTokens <= 0 ? null : windowTokens;
  const asked = Math.max(settings.reserveTokens ?? 30_000, settings.reserveFloorTokens ?? 20_000);
  const most = window === null ? asked : Math.floor(window * shareOfWindow);
  const reserve = Math.min(asked, most);
  const keepTokens = Math.min(settings.keepRecentTokens ?? 20_000, window === null ? Infinity : most);
  return {
    triggerTokens: window === null ? null : window - reserve,
    maxMessages: settings.maxMessages ?? 500,
    keepPercent: settings.keepPercent ?? 10,
    emergencyKeepPercent: settings.emergencyKeepPercent ?? 20,
    minMessages: settings.minMessages ?? 20,
    keepTokens,
    mostKeptTokens:
      window === null
        ? Math.floor((settings.keepRecentTokens ?? 20_000) * mostWithoutWindow)
        : Math.floor((window * (settings.mostKeptPercent ?? shareOfWindow * 100)) / 100),
    maxSummaryTokens: Math.min(settings.maxSummaryTokens ?? 2000, window === null ? Infinity : Math.floor(window / 10)),
    maxDetailTokens: Math.min(settings.maxDetailTokens ?? 350, window === null ? Infinity : Math.floor(window / 20)),
    toolResultChars: settings.toolResultChars ?? defaultToolResultChars,
    repairs: repairsOf(settings.reserveTokens, reserve),
  };
}

function repairsOf(given: number | undefined, used: number): readonly SettingRepair[] {
  if (given === undefined || given === used) return [];
  const reason = given < used ? "less than the floor of the reserve" : "more than a quarter of the window";
  return [{ key: "reserveTokens", given, used, reason }];
}

/** States whether a compaction is due. */
export interface CompactionNeed {
  /** Is true when the session must be compacted before its next call. */
  readonly due: boolean;
  /** States which limit was reached; null when no compaction is due. */
  readonly reason: "tokens" | "messages" | null;
  /** Holds the size in tokens at which compaction is due; null when the window is unknown. */
  readonly triggerTokens: number | null;
}

/**
 * Decides whether a session is compacted before its next call. Compaction is due at `window - reserve` tokens, or at a
 * number of messages when the window is unknown. Pass null as `tokens` when a compaction or an edit changed the context
 * since the measurement.
 */
export function compactionNeed(
  size: { readonly tokens: number | null; readonly windowTokens: number | null; readonly messages: number },
  settings: CompactionSettings = {},
): CompactionNeed {
  const { triggerTokens, maxMessages } = settingsForWindow(settings, size.windowTokens);
  if (settings.inAdvance === false) return { due: false, reason: null, triggerTokens };
  if (triggerTokens === null) {
    const due = size.messages >= maxMessages;
    return { due, reason: due ? "messages" : null, triggerTokens };
  }
  const due = size.tokens !== null && size.tokens >= triggerTokens;
  return { due, reason: due ? "tokens" : null, triggerTokens };
}
