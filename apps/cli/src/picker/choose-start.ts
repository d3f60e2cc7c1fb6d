import { continued, conversationFolder, type StartingSession } from "@throughline/agent/internal";
import type { SessionStore } from "@throughline/core";
import { listSessions, sessionProgram } from "@throughline/core/internal";
import { canMoveCursor } from "../chat/chat-view.ts";
import type { CommandContext } from "../command.ts";
import { handOffSession } from "../commands/handoff.ts";
import { startSync } from "../sync/start-sync.ts";
import type { Picked } from "./picked.ts";
import type { PickerOptions } from "./session-picker.ts";

/** A session to open, or the exit code of a program that is done. */
export type Chosen =
  | { readonly kind: "start"; readonly start: StartingSession }
  | { readonly kind: "new" }
  | { readonly kind: "stays" }
  | { readonly kind: "done"; readonly code: number };

/** Limits the sessions that are searched for an import. */
const mostLookedAt = 2000;

/** Returns whether the store holds a session of another program, which a person may want to continue. */
export async function hasImports({ scope, signal }: CommandContext, store: SessionStore): Promise<boolean> {
  let count = 0;
  for await (const { entry } of listSessions(store, { namespace: scope.namespace, limit: 100, signal })) {
    if (sessionProgram(entry) !== null) return true;
    if ((count += 1) >= mostLookedAt) break;
  }
  return false;
}

/** Asks in the picker which session to open, and prints the command of a session that continues elsewhere. */
export async function chooseStart(
  context: CommandContext,
  store: SessionStore,
  { escape }: PickerOptions,
): Promise<Chosen> {
  const picked = await context.output.apart(() => pick(context, store, escape));
  switch (picked.kind) {
    case "new":
      return { kind: "new" };
    case "back":
      return { kind: "stays" };
    case "continue":
      return { kind: "start", start: await continued(context, store, picked.state) };
    case "leave":
      return { kind: "done", code: picked.code };
    case "resume":
      await context.output.line(picked.line);
      return { kind: "done", code: 0 };
    case "handoff":
      return { kind: "done", code: await handOffSession(context, store, picked.state, picked.to) };
  }
}

/** Reads its own keys; those that were typed before wait for the conversation. */
async function pick(context: CommandContext, store: SessionStore, escape: PickerOptions["escape"]): Promise<Picked> {
  const { namespace, agentId } = context.scope;
  const folder = conversationFolder(context);
  const listed = { namespace, agentId, folder, userHome: context.host.userHome };
  const picker = canMoveCursor(context)
    ? new (await import("./session-picker.ts")).SessionPicker(context, store, listed, { escape })
    : new (await import("./numbered-picker.ts")).NumberedPicker(context, store, listed, { escape });
  const sync = startSync(context, () => Promise.resolve(store));
  try {
    return await picker.pick();
  } finally {
    await sync?.[Symbol.asyncDispose]();
  }
}
