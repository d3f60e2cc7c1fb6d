import { join, PolicyReader, type Fields } from "./policy-problem.ts";

/** `idle`: after some minutes without activity. `daily`: at an hour of the day. `never`: only by hand. */
type ResetMode = "never" | "idle" | "daily";

/** When one session resets. With `daily`, idle minutes may be given too: the earlier time counts. */
export interface ResetRule {
  /** What resets the session. */
  readonly mode: ResetMode;
  /** Hour of the day, 0 to 23. */
  readonly atHour: number;
  /** Null: idleness alone resets nothing. */
  readonly idleMinutes: number | null;
}

/** Conversations a rule can be made for. */
export type ResetType = "direct" | "group" | "channel" | "thread";

/** When sessions reset, by type and by channel. */
export interface ResetPolicy {
  /** The rule of every session that no other rule covers. */
  readonly rule: ResetRule;
  /** Rules by type of conversation; a type without one follows `rule`. */
  readonly byType: Readonly<Partial<Record<ResetType, ResetRule>>>;
  /** By channel in lower case; comes before the type. */
  readonly byChannel: ReadonlyMap<string, ResetRule>;
}

const never: ResetRule = { mode: "never", atHour: 4, idleMinutes: null };

/** Nothing resets by itself. */
export const neverReset: ResetPolicy = { rule: never, byType: {}, byChannel: new Map() };

const types = ["direct", "dm", "group", "channel", "thread"] as const;

/**
 * Reads `{reset, resetByType, resetByChannel}` of a `session` block; `none` is another word for `never`, `dm` for
 * `direct`. Without any of them nothing resets.
 * @throws {ThroughlineError} CONFIG_INVALID naming every field that is wrong
 */
export function readResetPolicy(session: unknown): ResetPolicy {
  const reader = new PolicyReader();
  const fields = reader.fields(session, "", ["reset", "resetByType", "resetByChannel"]);
  const byType: Partial<Record<ResetType, ResetRule>> = {};
  for (const [name, value] of entriesOf(reader, fields["resetByType"], "resetByType", types)) {
    byType[name === "dm" ? "direct" : (name as ResetType)] = readRule(reader, value, join("resetByType", name));
  }
  const byChannel = new Map(
    entriesOf(reader, fields["resetByChannel"], "resetByChannel", null).map(([name, value]) => [
      name.toLowerCase(),
      readRule(reader, value, join("resetByChannel", name)),
    ]),
  );
  const rule = fields["reset"] === undefined ? never : readRule(reader, fields["reset"], "reset");
  reader.assertSound("session");
  return { rule, byType, byChannel };
}

function entriesOf(
  reader: PolicyReader,
  value: unknown,
  path: string,
  known: readonly string[] | null,
): readonly (readonly [string, unknown])[] {
  if (value === undefined) return [];
  const names = known ?? Object.keys(typeof value === "object" && value !== null ? value : {});
  const fields: Fields = reader.fields(value, path, names);
  return Object.entries(fields).filter(([name]) => names.includes(name));
}

function readRule(reader: PolicyReader, value: unknown, path: string): ResetRule {
  const fields = reader.fields(value, path, ["mode", "atHour", "idleMinutes"]);
  const stated = reader.choice(fields, path, "mode", ["never", "none", "idle", "daily"] as const) ?? "never";
  const mode = stated === "none" ? "never" : stated;
  const idleMinutes = reader.integer(fields, path, "idleMinutes", 1, 525_600);
  return {
    mode,
    atHour: reader.integer(fields, path, "atHour", 0, 23) ?? 4,
    idleMinutes: idleMinutes ?? (mode === "idle" ? 60 : null),
  };
}
