import { lockSync, openProgramSync, readSyncConsent } from "@throughline/agent/internal";
import { parseStoreUrl } from "@throughline/config";
import { settingOf } from "@throughline/config/internal";
import { hasErrorCode, type SessionStore } from "@throughline/core";
import { causeText, systemClock } from "@throughline/core/internal";
import type { CommandContext } from "../command.ts";
import { runBeside } from "../run-beside.ts";
import { limitYoungHeap } from "./limit-young-heap.ts";

/**
 * Keeps importing what other programs write, beside the work of a command, until it is disposed. It does nothing until
 * the user has agreed once, and while another process does it. A failure is printed and never ends the command.
 */
export function startSync(
  context: CommandContext,
  openStore: () => Promise<SessionStore>,
  { isAsked = false }: { readonly isAsked?: boolean } = {},
): AsyncDisposable | null {
  const { settings, storeUrl, workingDirectory, output } = context;
  const isWanted = isAsked || (settingOf(settings, "sync.auto") === true && readSyncConsent(context) === "yes");
  // A store on a server has no place for the files of this machine that the server's user chose.
  const { scheme } = parseStoreUrl(storeUrl, workingDirectory);
  if (!isWanted || scheme === "http" || scheme === "memory") return null;
  return runBeside(context.signal, async (signal) => {
    try {
      await keepInSync(context, openStore, signal);
    } catch (error) {
      if (!signal.aborted) output.note(`Sessions of other programs are no longer imported: ${causeText(error)}`);
    }
  });
}

/** The store may be locked or replaced for a while, so an error that may pass is followed by another attempt. */
const retryMs = 10_000;

async function keepInSync(
  context: CommandContext,
  openStore: () => Promise<SessionStore>,
  signal: AbortSignal,
): Promise<void> {
  const release = await lockSync(context, signal);
  if (release === null) return;
  limitYoungHeap();
  try {
    const onNote = (message: string): void => context.output.note(message);
    await using sync = openProgramSync(context, {}, { openStore, onNote });
    while (!signal.aborted) {
      try {
        // The command prints no results, because its output belongs to its clients.
        for await (const pass of sync.passes(signal)) for await (const _source of pass) continue;
      } catch (error) {
        if (signal.aborted || hasErrorCode(error, "STORE_READ_ONLY", "STORE_VERSION_UNSUPPORTED")) throw error;
        onNote(`Sessions of other programs were not imported, and are tried again: ${causeText(error)}`);
        await systemClock.sleep(retryMs, signal);
      }
    }
  } finally {
    release();
  }
}
