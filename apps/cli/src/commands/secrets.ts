import type { SessionState, SessionStore } from "@throughline/core";
import { listSessions, resolveSession } from "@throughline/core/internal";
import { findSecrets, maskedSecret, redactSecrets, type SecretsOfSession } from "@throughline/transfer/internal";
import { forgetTypedLines } from "../chat/typed-lines.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { noteSpooledCalls } from "../server/spooled-calls.ts";

const findingsExitCode = 3;
const reason = "a secret";

interface SecretsOptions {
  readonly since?: number;
  readonly redact?: boolean;
}

/** Prints secrets masked. With `--redact` they are replaced afterwards, after a question. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { since, redact = false } = input.options as SecretsOptions;
  const { output, signal } = context;
  const store = await context.openStore(redact ? "write" : "read");
  const found: SecretsOfSession[] = [];
  let count = 0;
  for await (const each of findSecrets(store, sessionsOf(context, store, input), {
    signal,
    ...(since === undefined ? {} : { sinceMs: since }),
    onSession: ({ ref }) => output.progress(`searching ${ref.key}`),
  })) {
    for (const secret of each.secrets) await printSecret(context, each, secret);
    count += each.secrets.length;
    if (redact) found.push(each);
    else noteSource(context, each);
  }
  if (redact && found.length > 0) await redactAll(context, store, found);
  if (output.isJson) await output.end(count);
  else if (count === 0) await output.line("0 secrets");
  return redact || count === 0 ? 0 : findingsExitCode;
}

async function* sessionsOf(
  { scope, signal }: CommandContext,
  store: SessionStore,
  input: CommandInput,
): AsyncGenerator<SessionState, void, void> {
  const { since, redact = false } = input.options as SecretsOptions;
  for (const name of input.arguments) yield await resolveSession(store, name, scope, { isExact: redact, signal });
  if (input.arguments.length > 0) return;
  const { namespace, agentId } = scope;
  for await (const state of listSessions(store, { namespace, agentId, state: "any", sort: "key" }))
    if (since === undefined || state.updatedAtMs >= since) yield state;
}

async function printSecret(
  { output }: CommandContext,
  { state, sourcePath }: SecretsOfSession,
  { seq, recordId, field, rule, text }: SecretsOfSession["secrets"][number],
): Promise<void> {
  const { ref, sessionId } = state;
  const masked = maskedSecret(text);
  if (output.isJson) {
    const { agentId, key, archiveId = null } = ref;
    await output.object({
      kind: "secret",
      agentId,
      key,
      archiveId,
      sessionId,
      seq,
      id: recordId,
      field,
      rule,
      masked,
      sourcePath,
    });
  } else
    await output.line(`${ref.archiveId ?? ref.key}\t${seq === null ? (field ?? "") : `#${seq}`}\t${rule}\t${masked}`);
}

/** Only the copy in the store is changed, so the user must know the file that still holds the secret. */
function noteSource({ output }: CommandContext, { sourcePath }: SecretsOfSession): void {
  if (sourcePath !== null)
    output.note(`The file of the other program holds it as well, and is not changed: ${sourcePath}`);
}

async function redactAll(
  context: CommandContext,
  store: SessionStore,
  found: readonly SecretsOfSession[],
): Promise<void> {
  const { output, signal } = context;
  const count = found.reduce((sum, { secrets }) => sum + secrets.length, 0);
  const what = `${counted(count, "secret")} in ${counted(found.length, "session")}`;
  output.clearProgress();
  await context.confirm(`Permanently erase ${what}? The rest of the records stays. This cannot be undone.`);
  for (const each of found) {
    signal.throwIfAborted();
    const { key, agentId } = each.state.ref;
    output.progress(`redacting ${key}`);
    const { seqs, keptFields } = await redactSecrets(store, each, { reason });
    forgetTypedLines(context, agentId);
    for (const field of keptFields) output.note(`The field ${field} of ${key} holds a secret and was not changed.`);
    noteSource(context, each);
    if (!output.isJson) await output.line(`${key}\t${counted(seqs.length, "record")} redacted`);
  }
  await noteSpooledCalls(context);
}
