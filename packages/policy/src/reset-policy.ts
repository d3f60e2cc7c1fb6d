import { join, PolicyReader, type Fields } from "./policy-problem.ts";

/** Names what resets a session. */
type ResetMode = "never" | "idle" | "daily";

/** A rule with `daily` may also set idle minutes; the earlier of both times counts. */
export interface ResetRule {
  /** Sets the event that resets the session: idle minutes, an hour of the day, or only a manual reset. */
  readonly mode: ResetMode;
  /** States the hour of the day, from 0 to 23, for `daily`. */
  readonly atHour: number;
  /** Null means that idleness alone resets nothing. */
  readonly idleMinutes: number | null;
}

/** Names the types of conversations that rules distinguish. */
export type ResetType = "direct" | "group" | "channel" | "thread";

/** Sets when sessions reset, by type and by channel. */
export interface ResetPolicy {
  /** Sets the rule of every session that no other rule covers. */
  readonly rule: ResetRule;
  /** Sets rules by type of conversation; a type without a rule follows `rule`. */
  readonly byType: Readonly<Partial<Record<ResetType, ResetRule>>>;
  /** Sets rules by channel name in lower case. A channel's rule overrides the rule of the type. */
  readonly byChannel: ReadonlyMap<string, ResetRule>;
}

const never: ResetRule = { mode: "never", atHour: 4, idleMinutes: null };

export const neverReset: ResetPolicy = { rule: never, byType: {}, byChannel: new Map() };

const types = ["direct", "dm", "group", "channel", "thread"] as const;

/**
 * Reads `{reset, resetByType, resetByChannel}` of a `session` block. `none` is an alias of `never`, `dm` of `direct`.
 * Without any of these fields no session resets.
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
