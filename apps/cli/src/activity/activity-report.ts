import type { SessionState } from "@throughline/core";
import { sessionProgram, sessionRow } from "@throughline/core/internal";
import type { SessionActivity } from "@throughline/usage/internal";

/** Holds the sums of some sessions. */
export interface ActivityTotals {
  readonly sessions: number;
  readonly messages: number;
  readonly toolCalls: number;
  readonly failedTools: number;
  /** States the cost in US dollars of the calls whose cost is known; null when it is known of none. */
  readonly costUsd: number | null;
  readonly unpricedCalls: number;
}

interface ActivePlace extends ActivityTotals {
  /** Names the format; `own` for sessions that began here. */
  readonly program: string;
  readonly folder: string | null;
}

interface NamedSession {
  readonly agentId: string;
  readonly key: string;
  readonly sessionId: string;
  readonly name: string;
  readonly program: string;
  readonly folder: string | null;
  readonly messages: number;
  readonly costUsd: number | null;
  readonly unpricedCalls: number;
}

interface ActiveDay {
  /** Names the day in the zone of this machine: `2026-03-01`. */
  readonly day: string;
  readonly sessions: number;
  readonly messages: number;
  readonly toolCalls: number;
}

interface ListedSession extends NamedSession {
  readonly state: SessionState;
}

export interface ActivityReport extends ActivityTotals {
  readonly places: readonly ActivePlace[];
  readonly longest: readonly ListedSession[];
  readonly mostExpensive: readonly ListedSession[];
  readonly days: readonly ActiveDay[];
}

const namedSessions = 5;
const shownDays = 14;

/** Adds up what happened in sessions: by program and folder, by session, and by day up to today. */
export function activityReport(sessions: readonly SessionActivity[], nowMs: number): ActivityReport {
  const total = new Sum();
  const places = new Map<string, { readonly head: Pick<ActivePlace, "program" | "folder">; readonly sum: Sum }>();
  for (const session of sessions) {
    const head = placeOf(session.state);
    const id = JSON.stringify(head);
    const place = places.get(id) ?? { head, sum: new Sum() };
    places.set(id, place);
    total.add(session);
    place.sum.add(session);
  }
  const listed = sessions.map(listedSession);
  return {
    ...total.totals(),
    places: Array.from(places.values(), ({ head, sum }) => ({ ...head, ...sum.totals() })).toSorted(byMessages),
    longest: listed
      .filter(({ messages }) => messages > 0)
      .toSorted(byMessages)
      .slice(0, namedSessions),
    mostExpensive: listed
      .filter(({ costUsd }) => (costUsd ?? 0) > 0)
      .toSorted((one, other) => (other.costUsd ?? 0) - (one.costUsd ?? 0))
      .slice(0, namedSessions),
    days: daysOf(sessions, nowMs),
  };
}

function byMessages(one: { readonly messages: number }, other: { readonly messages: number }): number {
  return other.messages - one.messages;
}

function placeOf({ entry }: SessionState): Pick<ActivePlace, "program" | "folder"> {
  return { program: sessionProgram(entry) ?? "own", folder: entry.cwd ?? null };
}

function listedSession({ state, usage }: SessionActivity): ListedSession {
  const { agentId, key, sessionId, name, messageCount: messages } = sessionRow(state);
  const { costUsd, unpricedCalls } = usage;
  return { state, agentId, key, sessionId, name, ...placeOf(state), messages, costUsd, unpricedCalls };
}

/** Returns the report in the form that `--json` prints. */
export function activityJson({ longest, mostExpensive, ...report }: ActivityReport): object {
  const named = ({ state: _state, ...session }: ListedSession): NamedSession => session;
  return { ...report, longest: longest.map(named), mostExpensive: mostExpensive.map(named) };
}

class Sum {
  #sessions = 0;
  #messages = 0;
  #toolCalls = 0;
  #failedTools = 0;
  #calls = 0;
  #unpricedCalls = 0;
  #costUsd = 0;

  add({ state, usage, counts }: SessionActivity): void {
    this.#sessions += 1;
    this.#messages += state.messageCount;
    this.#calls += usage.calls;
    this.#unpricedCalls += usage.unpricedCalls;
    this.#costUsd += usage.costUsd ?? 0;
    for (const { toolCalls, failedTools } of counts) {
      this.#toolCalls += toolCalls;
      this.#failedTools += failedTools;
    }
  }

  totals(): ActivityTotals {
    const isKnown = this.#calls === 0 || this.#unpricedCalls < this.#calls;
    return {
      sessions: this.#sessions,
      messages: this.#messages,
      toolCalls: this.#toolCalls,
      failedTools: this.#failedTools,
      costUsd: isKnown ? this.#costUsd : null,
      unpricedCalls: this.#unpricedCalls,
    };
  }
}

function daysOf(sessions: readonly SessionActivity[], nowMs: number): readonly ActiveDay[] {
  const names = Array.from({ length: shownDays }, (_, at) => dayBefore(nowMs, shownDays - 1 - at));
  const days = new Map(names.map((day) => [day, { sessions: 0, messages: 0, toolCalls: 0 }]));
  // No day is longer than 25 hours, so older counts are skipped without a look at the calendar.
  const fromMs = nowMs - shownDays * 25 * 3_600_000;
  for (const { counts } of sessions) {
    const active = new Set<string>();
    for (const { atMs, messages, toolCalls } of counts) {
      if (atMs < fromMs) continue;
      const name = dayName(new Date(atMs));
      const day = days.get(name);
      if (day === undefined) continue;
      if (!active.has(name)) day.sessions += 1;
      active.add(name);
      day.messages += messages;
      day.toolCalls += toolCalls;
    }
  }
  return Array.from(days, ([day, counts]) => ({ day, ...counts }));
}

function dayBefore(nowMs: number, days: number): string {
  const date = new Date(nowMs);
  // Noon exists on every day, whatever the clock of the zone does.
  date.setHours(12, 0, 0, 0);
  date.setDate(date.getDate() - days);
  return dayName(date);
}

function dayName(date: Date): string {
  const parts = [date.getFullYear(), date.getMonth() + 1, date.getDate()];
  return parts.map((part) => String(part).padStart(2, "0")).join("-");
}
