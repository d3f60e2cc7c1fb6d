import { optionKinds, type OptionTable } from "@throughline/core/internal";

/** When a session is compacted, and how much of it stays. */
export interface CompactionSettings {
  /** False: only when a request does not fit, or by hand. @default true */
  readonly inAdvance?: boolean;
  /** Room that is kept free for the answer and a flush. @default 30000 */
  readonly reserveTokens?: number;
  /** The reserve is never smaller, but where the window is. @default 20000 */
  readonly reserveFloorTokens?: number;
  /** Compacts a session with an unknown window at this number of messages. @default 500 */
  readonly maxMessages?: number;
  /** The share of the messages that stays, in percent. @default 10 */
  readonly keepPercent?: number;
  /** The same when no model wrote the summary. @default 20 */
  readonly emergencyKeepPercent?: number;
  /** The fewest messages that stay, as far as their tokens allow. @default 20 */
  readonly minMessages?: number;
  /** The fewest tokens that stay, at most a quarter of the window. @default 20000 */
  readonly keepRecentTokens?: number;
  /** The largest share of the window that the kept part takes, in percent. @default 25 */
  readonly mostKeptPercent?: number;
  /** The longest summary, in tokens. @default 2000, at most a tenth of the window */
  readonly maxSummaryTokens?: number;
  /** The longest list of details beside it, in tokens. @default 350, at most a twentieth of the window */
  readonly maxDetailTokens?: number;
  /** Longer tool results are cut in the middle before a summarizer reads them; in characters. @default 2000 */
  readonly toolResultChars?: number;
}

const { flag, number } = optionKinds;

/** The kinds of the settings of a compaction. */
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

/** The settings in force for a window. */
export interface EffectiveSettings {
  /** The size at which compaction is due; null when the window is not known. */
  readonly triggerTokens: number | null;
  /** The number of messages at which a session with an unknown window is compacted. */
  readonly maxMessages: number;
  /** The share of the messages that stays, in percent. */
  readonly keepPercent: number;
  /** The share of the messages that stays when no model wrote the summary, in percent. */
  readonly emergencyKeepPercent: number;
  /** The fewest messages that stay, as far as their tokens allow. */
  readonly minMessages: number;
  /** The fewest tokens of the kept part, */
  readonly keepTokens: number;
  /** and the most tokens, whatever the counts of messages are. */
  readonly mostKeptTokens: number;
  /** The longest summary, in tokens. */
  readonly maxSummaryTokens: number;
  /** The longest list of details beside the summary, in tokens. */
  readonly maxDetailTokens: number;
  /** The longest tool result that a summarizer reads uncut, in characters. */
  readonly toolResultChars: number;
  /** What the window did not leave as it was given. */
  readonly repairs: readonly SettingRepair[];
}

/** A setting that could not be used as it was given. */
export interface SettingRepair {
  /** The name of the setting in `CompactionSettings`. */
  readonly key: string;
  /** The value that was given. */
  readonly given: number;
  /** The value in force. */
  readonly used: number;
  /** Why the given value could not be used, as a phrase. */
  readonly reason: string;
}

/** What matters of a long result is at its ends. */
export const defaultToolResultChars = 2000;

const shareOfWindow = 0.25;
/** Kept at most, in shares of what is kept at least, where no window sets the limit. */
const mostWithoutWindow = 2.5;

/**
 * The settings for a window of this size, in tokens; null and 0 stand for an unknown one. The reserve and the part that
 * is kept each take at most a quarter of the window, so that every window has room for a conversation.
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

/** Whether a compaction is due. */
export interface CompactionNeed {
  /** Whether the session is to be compacted before its next call. */
  readonly due: boolean;
  /** What made it due; null when it is not. */
  readonly reason: "tokens" | "messages" | null;
  /** The number of tokens at which compaction is due; null when the window is unknown. */
  readonly triggerTokens: number | null;
}

/**
 * Whether a session is to be compacted before its next call: at `window - reserve` tokens, or where the window is not
 * known at a number of messages. `tokens` is a fresh size; one from before a compaction or an edit must be null.
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
