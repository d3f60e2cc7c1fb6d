// What every contender is asked to do, and with what. Copied beside the packages of the peers, so it imports nothing.

/** A store, opened in a folder of its own. */
export interface Contender {
  /** Stores the four messages of one turn; settled when the contender calls them stored. */
  readonly turn: (index: number) => Promise<unknown>;
  /** Opens what was stored anew, as a restarted program would, and gives the number of messages read. */
  readonly reopen: () => Promise<number>;
  readonly close: () => Promise<unknown>;
}

/** The parts of a turn: 200 bytes of the user, a call of a tool, 1,000 bytes of result, 500 bytes of answer. */
export const turnParts: {
  readonly question: string;
  readonly tool: string;
  readonly toolInput: Readonly<Record<string, unknown>>;
  readonly result: string;
  readonly answer: string;
} = {
  question: "q".repeat(200),
  tool: "read",
  toolInput: { path: "src/index.ts" },
  result: "r".repeat(1000),
  answer: "a".repeat(500),
};

/** What an answer is said to have used, for contenders that keep it. */
export const turnUsage: Readonly<Record<string, unknown>> = {
  input: 900,
  output: 100,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 1000,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

/** The id of the call of a turn. */
export function callId(index: number): string {
  return `call_${index}`;
}
