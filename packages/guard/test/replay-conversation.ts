import { emptyCalibration, observe } from "@throughline/tokens";
import type { Actual, Calibration } from "@throughline/tokens/internal";
import { readUsage } from "@throughline/core/internal";
import { createGuardTurn } from "../src/guard-options.ts";
import type { GuardChange } from "../src/guard-change.ts";
import type { GuardOutcome } from "@throughline/guard";
import { openFixture, type Fixture } from "./guard-fixture.ts";

/** One call: what the gauge said before it, and what the provider counted. */
export interface GaugePoint {
  readonly message: number;
  readonly estimated: number;
  readonly lowTokens: number;
  readonly highTokens: number;
  readonly source: string;
  readonly counted: number;
}

export interface Replay {
  readonly points: readonly GaugePoint[];
  readonly calls: number;
  /** Requests the provider refused, for any reason. */
  readonly refused: number;
  /** Calls for one question, and compactions in one turn of the user. */
  readonly mostCalls: number;
  readonly mostCompactions: number;
  /** Questions that ended in an error. */
  readonly raised: number;
}

/**
 * Plays a conversation turn by turn, as an agent's loop would: what a call shortened stays shortened, what the provider
 * measured is gone on from, and what it shows of the estimate is learned.
 */
export async function replayConversation(
  conversation: readonly object[],
  windowTokens: number,
  everyNth: number,
): Promise<Replay> {
  const fixture = await openFixture("anthropic", false, windowTokens);
  const player = new Player(fixture, windowTokens);
  let replies = 0;
  for (const [index, message] of conversation.entries()) {
    const { role, content } = message as { role: string; content: unknown };
    if (role === "user" && !JSON.stringify(content).includes('"tool_result"')) player.beginTurn();
    if (role === "assistant" && replies++ % everyNth === 0) await player.ask(index);
    player.messages.push(message);
  }
  const { points, totals } = player;
  const refused = fixture.simulator.refusals.length;
  await fixture.simulator.close();
  return { ...totals, points, calls: fixture.sent.length, refused };
}

class Player {
  messages: unknown[] = [];
  readonly points: GaugePoint[] = [];
  readonly totals: { mostCalls: number; mostCompactions: number; raised: number } = {
    mostCalls: 0,
    mostCompactions: 0,
    raised: 0,
  };
  private readonly fixture: Fixture;
  private readonly windowTokens: number;
  private keptChanges: readonly GuardChange[] = [];
  private turn = createGuardTurn();
  private actual: Actual | null = null;
  private calibration: Calibration = emptyCalibration;

  constructor(fixture: Fixture, windowTokens: number) {
    this.fixture = fixture;
    this.windowTokens = windowTokens;
  }

  beginTurn(): void {
    this.turn = createGuardTurn();
  }

  async ask(message: number): Promise<void> {
    const { fixture, windowTokens, keptChanges, turn, actual, calibration, messages } = this;
    const before = fixture.sent.length;
    const given = { messages, windowTokens, keptChanges, turn, actual, calibration, maxOutputTokens: 1024 };
    const found = await fixture.guard(given).catch((error: unknown) => error as Error);
    this.totals.mostCalls = Math.max(this.totals.mostCalls, fixture.sent.length - before);
    this.totals.mostCompactions = Math.max(this.totals.mostCompactions, turn.compactions);
    if (found instanceof Error) this.totals.raised += 1;
    else this.take(message, found);
  }

  private take(message: number, found: GuardOutcome<unknown>): void {
    const { estimate, changes, request } = found;
    const usage = readUsage((found.reply as { readonly usage: unknown }).usage);
    if (usage === null) throw new Error("the simulator states what it has counted");
    const counted = usage.promptTokens;
    const { tokens: estimated, lowTokens, highTokens, source } = estimate;
    this.points.push({ message, estimated, lowTokens, highTokens, source, counted });
    if (changes.length === 0 && this.actual !== null) this.learn(this.actual, counted);
    const isCompacted = changes.some(({ what }) => what === "history");
    if (isCompacted) this.messages = [...request.messages];
    this.keptChanges = isCompacted ? [] : [...this.keptChanges, ...changes];
    this.actual = { tokens: counted, coversMessages: request.messages.length };
  }

  private learn({ tokens, coversMessages }: Actual, counted: number): void {
    const { counter } = this.fixture;
    const added = counter.countMessages(this.messages.slice(coversMessages) as never);
    this.calibration = observe(this.calibration, { counter, counted: added, observedTokens: counted - tokens });
  }
}

/** How far the gauge lay off, in per cent of what was counted. */
export interface GaugeError {
  readonly calls: number;
  readonly mean: number;
  readonly bias: number;
  readonly worst: number;
  readonly inBand: number;
}

/** Over some calls. */
export function gaugeError(points: readonly GaugePoint[]): GaugeError {
  const offs = points.map(({ estimated, counted }) => (100 * (estimated - counted)) / counted);
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const isIn = ({ lowTokens, highTokens, counted }: GaugePoint): boolean =>
    lowTokens <= counted && counted <= highTokens;
  return {
    calls: points.length,
    mean: mean(offs.map(Math.abs)),
    bias: mean(offs),
    worst: Math.max(...offs.map(Math.abs)),
    inBand: (100 * points.filter(isIn).length) / points.length,
  };
}
