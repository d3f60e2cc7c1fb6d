import process from "node:process";
import { maskSecrets, settingOf } from "@throughline/config/internal";
import type { SessionRef } from "@throughline/core";
import { resolveSession, systemClock } from "@throughline/core/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { findKnownServer, type KnownServer } from "../page/known-server.ts";
import { openWithToken } from "../page/open-in-browser.ts";
import { pageAddress } from "../page/page-address.ts";
import { pageFolder } from "../page/page-folder.ts";
import { makePageToken } from "../page/page-token.ts";
import { aborted } from "../server/listening.ts";
import { assertRecord } from "../show-place.ts";

interface UiOptions {
  readonly at?: number;
  readonly allAgents?: boolean;
  /** Is false for `--no-open`. */
  readonly open?: boolean;
  readonly exitWhenIdle?: boolean;
  /** Is false for `--no-sync`. */
  readonly sync?: boolean;
}

interface UiRun {
  readonly context: CommandContext;
  readonly options: UiOptions;
  readonly place: { readonly ref: SessionRef; readonly seq: number | null } | null;
}

/** A browser has read the file that leads it to the page within this time. */
const handedOverMs = 5000;
const besideMs = 30_000;

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as UiOptions;
  const [key] = input.arguments;
  if (options.at !== undefined && key === undefined)
    throw usageError("--at shows a record of a session: name its KEY.");
  const known = await findKnownServer(context);
  const place = key === undefined ? null : await placeOf(context, key, options.at ?? null);
  if (known === null) await showBeside({ context, options, place });
  else await showOn(known, { context, options, place });
  return 0;
}

async function placeOf(context: CommandContext, key: string, seq: number | null): Promise<UiRun["place"]> {
  const { scope, signal } = context;
  const store = await context.openStore("read");
  const { ref } = await resolveSession(store, key, scope, { signal });
  if (seq !== null) await assertRecord(store, ref, seq);
  return { ref, seq };
}

/** Opens the page of a running server, and ends. */
async function showOn(known: KnownServer, { context, options, place }: UiRun): Promise<void> {
  const { output, signal } = context;
  const { text, expiresAtMs } = await makePageToken(context, known, agentsOf(context, options, place));
  const url = pageAddress(known.url, place, text);
  await tell(context, { url, pid: null, expiresAtMs });
  if (!isOpened(output, options)) return;
  const opened = await openedPage(context, url);
  try {
    await systemClock.sleep(opened === null ? 0 : handedOverMs, signal).catch(() => {});
  } finally {
    opened?.remove();
  }
}

/** Starts a server of its own. It ends at an interrupt, or when no tab is open any more. */
async function showBeside({ context, options, place }: UiRun): Promise<void> {
  const { output, signal } = context;
  const folder = pageFolder();
  const { serveBeside, whenIdle } = await import("../page/serve-beside.ts");
  const isSynced = options.sync !== false && (await isSyncAgreed(context));
  const server = await serveBeside(context, { folder, agents: agentsOf(context, options, place) });
  try {
    const url = pageAddress(server.url, place, server.localToken);
    await tell(context, { url, pid: process.pid, expiresAtMs: null });
    await using _sync = isSynced ? await startedSync(context) : null;
    using idle = options.exitWhenIdle === true ? whenIdle(server) : null;
    const opened = isOpened(output, options) ? await openedPage(context, url) : null;
    const removal = setTimeout(() => opened?.remove(), besideMs);
    await aborted(idle === null ? signal : AbortSignal.any([signal, idle]));
    clearTimeout(removal);
    opened?.remove();
    if (!signal.aborted) output.note("Nobody has looked at the page for 10 minutes, so it was ended.");
  } finally {
    await server.close();
  }
}

function agentsOf({ scope }: CommandContext, { allAgents }: UiOptions, place: UiRun["place"]): readonly string[] | "*" {
  return allAgents === true ? "*" : [...new Set([scope.agentId, ...(place === null ? [] : [place.ref.agentId])])];
}

/** A person who was never asked is asked now, on a terminal only. */
async function isSyncAgreed(context: CommandContext): Promise<boolean> {
  const { settings, isYes, canAsk } = context;
  if (isYes || !canAsk || settingOf(settings, "sync.auto") !== true) return true;
  const { askForSync, undecidedPrograms } = await import("../sync/sync-question.ts");
  const undecided = await undecidedPrograms(context, null);
  return undecided === null || askForSync(context, undecided);
}

async function startedSync(context: CommandContext): Promise<AsyncDisposable | null> {
  const { startSync } = await import("../sync/start-sync.ts");
  return startSync(context, () => context.openStore("write"));
}

/** A program that asks for JSON opens the address itself. */
function isOpened({ isJson }: CommandContext["output"], { open }: UiOptions): boolean {
  return open !== false && !isJson;
}

async function openedPage(context: CommandContext, url: string): ReturnType<typeof openWithToken> {
  const opened = await openWithToken(context, url);
  if (opened.problem !== null) context.output.note(`${opened.problem}. Open the address in a browser.`);
  return opened;
}

interface ToldPage {
  readonly url: string;
  /** Is null for a server that this command has not started. */
  readonly pid: number | null;
  readonly expiresAtMs: number | null;
}

async function tell({ output, storeUrl }: CommandContext, { url, pid, expiresAtMs }: ToldPage): Promise<void> {
  const store = maskSecrets(storeUrl);
  if (output.isJson) await output.object({ kind: "page", url, pid, store, expiresAtMs });
  else await output.line(url);
  await output.flush();
  if (output.isJson) return;
  if (pid !== null) {
    output.note(
      `The page shows ${store} until Ctrl-C. Whoever has this address on this machine can read the sessions.`,
    );
    return;
  }
  const end = expiresAtMs === null ? "" : " The token in the address reads, and ends after 12 hours.";
  output.note(`The running server has the page.${end}`);
}
