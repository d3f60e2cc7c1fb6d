import type { ListQuery, SessionState, SessionStore } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { ageText } from "../time-text.ts";
import { sessionRow, type SessionRow } from "@throughline/queries";
import type { TableColumn } from "../text-table.ts";

interface SessionsOptions {
  readonly limit?: number;
  readonly cursor?: string;
  readonly since?: number;
  readonly until?: number;
  readonly sort?: "updated" | "key";
  readonly allAgents?: boolean;
  readonly archived?: boolean;
}

const shownByDefault = 50;
const largestPage = 1000;
/** People see the total only up to this number: counting 10,000 sessions took half a second. */
const countedAtMost = 1000;

const columns: readonly TableColumn[] = [
  { title: "KEY" },
  { title: "LABEL", rank: 2 },
  { title: "ID", rank: 4 },
  { title: "RECORDS", align: "right", rank: 5 },
  { title: "MESSAGES", align: "right", rank: 1 },
  { title: "TOKENS", align: "right", rank: 3 },
  { title: "CONTEXT", align: "right", rank: 3 },
  { title: "LAST", align: "right" },
  { title: "STATE", rank: 3 },
];

/** Lists sessions: for people the newest, for programs all of them, read page by page. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as SessionsOptions;
  const { output, scope, signal } = context;
  const store = await context.openStore("read");
  const query: ListQuery = {
    namespace: scope.namespace,
    ...(options.allAgents === true ? {} : { agentId: scope.agentId }),
    state: options.archived === true ? "any" : "active",
    sort: options.sort ?? "updated",
    ...(options.since === undefined ? {} : { sinceMs: options.since }),
    ...(options.until === undefined ? {} : { untilMs: options.until }),
    signal,
  };
  const limit = options.limit ?? (output.isJson ? Number.POSITIVE_INFINITY : shownByDefault);
  const rows: SessionRow[] = [];
  let count = 0;
  const show = async (state: SessionState): Promise<void> => {
    count += 1;
    if (output.isJson) await output.object(sessionRow(state));
    else rows.push(sessionRow(state));
  };
  const nextCursor = await readSessions(store, query, limit, options.cursor ?? null, show);
  if (output.isJson) {
    await output.end(count, nextCursor);
    return 0;
  }
  const nowMs = Date.now();
  await output.table(
    columns,
    rows.map((row) => cells(row, nowMs)),
  );
  await output.flush();
  if (count === 0) output.note(`No sessions of agent ${scope.agentId} in this store.`);
  else output.note(await countText(store, query, count, nextCursor, options.cursor !== undefined));
  return 0;
}

/** Calls `show` for at most `limit` sessions; gives the cursor of what follows. */
async function readSessions(
  store: SessionStore,
  query: ListQuery,
  limit: number,
  firstCursor: string | null,
  show: (state: SessionState) => Promise<void>,
): Promise<string | null> {
  let cursor = firstCursor;
  let left = limit;
  do {
    const page = await store.list({
      ...query,
      limit: Math.min(left, largestPage),
      ...(cursor === null ? {} : { cursor }),
    });
    for (const state of page.sessions) await show(state);
    left -= page.sessions.length;
    cursor = page.nextCursor;
  } while (cursor !== null && left > 0);
  return cursor;
}

async function countText(
  store: SessionStore,
  query: ListQuery,
  shown: number,
  nextCursor: string | null,
  isContinued: boolean,
): Promise<string> {
  let rest = 0;
  const cursor =
    nextCursor === null
      ? null
      : await readSessions(store, query, countedAtMost, nextCursor, async () => void (rest += 1));
  const total = `${cursor === null ? "" : "more than "}${shown + rest}`;
  const more = nextCursor === null ? "" : " (--limit all shows all)";
  return `${shown} of ${total}${isContinued ? " from here on" : ""} shown${more}`;
}

function cells(row: SessionRow, nowMs: number): readonly string[] {
  return [
    row.key,
    row.label ?? "",
    row.sessionId,
    String(row.recordCount),
    String(row.messageCount),
    row.contextTokens === null ? "-" : String(row.contextTokens),
    row.contextPercent === null ? "-" : `${row.contextPercent} %`,
    ageText(row.updatedAtMs, nowMs),
    [
      ...(row.state === "archived" ? ["archived"] : []),
      ...(row.incomplete === null ? [] : [`incomplete ${row.incomplete}`]),
    ].join(", "),
  ];
}
