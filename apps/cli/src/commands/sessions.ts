import type { ListQuery, SessionState, SessionStore } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { shownFolder, shownName, shownProgram } from "../session-names.ts";
import { rowFilter, type SessionFilter } from "../session-filter.ts";
import { ageText } from "../time-text.ts";
import { sessionRow, type SessionRow } from "@throughline/core/internal";
import type { TableColumn } from "../text-table.ts";

interface SessionsOptions extends SessionFilter {
  readonly limit?: number;
  readonly cursor?: string;
  readonly since?: number;
  readonly until?: number;
  readonly sort?: "updated" | "key";
  readonly allAgents?: boolean;
  readonly archived?: boolean;
  readonly keys?: boolean;
}

const shownByDefault = 50;
const largestPage = 1000;
/** Limits the total that is counted for people: counting 10,000 sessions took half a second. */
const countedAtMost = 1000;

const columns: readonly TableColumn[] = [
  { title: "NAME", least: 17, cut: "end" },
  { title: "PROGRAM", rank: 1, least: 11, givesFirst: true, cut: "end" },
  { title: "FOLDER", rank: 2, least: 10, cut: "start" },
  { title: "MESSAGES", align: "right" },
  { title: "LAST", align: "right" },
  { title: "CONTEXT", align: "right", rank: 4 },
  { title: "STATE", rank: 3 },
  { title: "KEY", least: 8, givesFirst: true },
];
const columnsOfWholeKeys: readonly TableColumn[] = [...columns.slice(0, -1), { title: "KEY" }];

/** Prints the newest sessions for people, and all sessions page by page for programs. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as SessionsOptions;
  const { output, scope, signal } = context;
  const store = await context.openStore("list");
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
  const isWanted = rowFilter(context.host, options);
  const states: SessionState[] = [];
  let count = 0;
  const show = async (state: SessionState): Promise<void> => {
    count += 1;
    if (output.isJson) await output.object({ ...sessionRow(state) });
    else states.push(state);
  };
  const nextCursor = await readSessions(store, { query, isWanted }, limit, options.cursor ?? null, show);
  if (output.isJson) {
    await output.end(count, nextCursor);
    return 0;
  }
  const nowMs = Date.now();
  const rows: (readonly string[])[] = [];
  for (const state of states)
    rows.push(
      cells(sessionRow(state), await shownName(store, state, signal), { userHome: context.host.userHome, nowMs }),
    );
  await output.table(options.keys === true ? columnsOfWholeKeys : columns, rows);
  await output.flush();
  if (count === 0) output.note(noneText(context, options));
  else output.note(await countText(store, { query, isWanted }, count, nextCursor, options.cursor !== undefined));
  return 0;
}

interface Filtered {
  readonly query: ListQuery;
  readonly isWanted: (row: SessionRow) => boolean;
}

function noneText({ scope }: CommandContext, { program, folder, here }: SessionsOptions): string {
  const isNarrowed = program !== undefined || folder !== undefined || here === true;
  return isNarrowed
    ? "No such session. `throughline sessions` lists those of every program and folder."
    : `No sessions of agent ${scope.agentId} in this store.`;
}

/** Calls `show` for at most `limit` sessions; returns the cursor of the next page. */
async function readSessions(
  store: SessionStore,
  { query, isWanted }: Filtered,
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
    for (const state of page.sessions) {
      if (!isWanted(sessionRow(state))) continue;
      await show(state);
      left -= 1;
    }
    cursor = page.nextCursor;
  } while (cursor !== null && left > 0);
  return cursor;
}

async function countText(
  store: SessionStore,
  filtered: Filtered,
  shown: number,
  nextCursor: string | null,
  isContinued: boolean,
): Promise<string> {
  let rest = 0;
  const cursor =
    nextCursor === null
      ? null
      : await readSessions(store, filtered, countedAtMost, nextCursor, async () => void (rest += 1));
  const total = `${cursor === null ? "" : "more than "}${shown + rest}`;
  const more = nextCursor === null ? "" : " (--limit all shows all)";
  return `${shown} of ${total}${isContinued ? " from here on" : ""} shown${more}`;
}

function cells(
  row: SessionRow,
  name: string,
  { userHome, nowMs }: { readonly userHome: string; readonly nowMs: number },
): readonly string[] {
  return [
    name,
    shownProgram(row.program),
    shownFolder(row.cwd, userHome),
    String(row.messageCount),
    ageText(row.updatedAtMs, nowMs),
    row.contextPercent === null ? "" : `${row.contextPercent} %`,
    [
      ...(row.state === "archived" ? ["archived"] : []),
      ...(row.pendingApprovals === 0 ? [] : ["waits for an answer"]),
      ...(row.incomplete === null ? [] : [`incomplete ${row.incomplete}`]),
    ].join(", "),
    row.key,
  ];
}
