import { forkSession, freeRef, resolveSession, systemRandom } from "@throughline/core/internal";
import { restoredText } from "./greeting.ts";
import type { ReplContext } from "./repl-context.ts";

const noReset = "No other program has reset this session.";

export async function acceptReset({ context: { output }, conversation }: ReplContext): Promise<void> {
  const { session } = conversation;
  if (session === null || (await conversation.replacement()) === null) return output.line(noReset);
  await session.acceptReset();
  await output.line(
    "Continuing in the new session ",
    { text: session.key, style: "bold" },
    ` (id ${session.sessionId})`,
  );
}

export async function recoverEarlier({ context, conversation }: ReplContext): Promise<void> {
  const { output, scope, signal } = context;
  const { store } = conversation;
  const replacement = await conversation.replacement();
  if (replacement === null) return output.line(noReset);
  const earlier = await resolveSession(store, replacement.sessionId, scope, { isExact: true, signal });
  const { namespace, agentId, key } = earlier.ref;
  const target = await freeRef(store, { namespace, agentId, key: `${key}-recovered` }, signal);
  await forkSession(store, earlier.ref, target, { sessionId: systemRandom.uuid(), signal });
  const opened = await conversation.switchTo({ ref: target, origin: null });
  await output.line("Continuing in a copy of the earlier session: ", { text: target.key, style: "bold" });
  const restored = opened === null ? null : restoredText(opened);
  if (restored !== null) await output.line(restored);
}
