import { isSessionId, refsOf, resolveSession, systemRandom } from "@throughline/core/internal";
import { openSession, ThroughlineError } from "@throughline/core";
import type { Durability, SessionRef, SessionStore } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { appendLines, type DraftLine, readDrafts } from "@throughline/transfer/internal";

interface AppendCommandOptions {
  readonly batch?: number;
  readonly durability?: Durability;
  readonly expectHead?: string;
  readonly idempotencyKey?: string;
}

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as AppendCommandOptions;
  const { host } = context;
  const store = await context.openStore("write");
  checkLimits(store, options);
  try {
    // The key is checked before a line is read, so that a script with empty input gets the error too.
    assertAddress(context, input.arguments[0] ?? "");
    return await appendInput(context, store, input.arguments[0] ?? "", options);
  } finally {
    // A program that still writes to stdin must not keep this process alive after a bad line.
    host.stdin.destroy();
  }
}

async function appendInput(
  context: CommandContext,
  store: SessionStore,
  key: string,
  options: AppendCommandOptions,
): Promise<number> {
  const { host, output, signal } = context;
  const lines = readDrafts(host.stdin, signal);
  // An empty input must not create a session.
  const first = await lines.next();
  if (first.done === true) return 0;
  const ref = await sessionFor(context, store, key, options.expectHead);
  await appendLines(store, ref, preceded(first.value, lines), {
    batch: options.batch ?? null,
    durability: options.durability ?? null,
    expectHead: options.expectHead === undefined ? undefined : options.expectHead === "" ? null : options.expectHead,
    idempotencyKey: options.idempotencyKey ?? null,
    signal,
    acknowledge: async (acknowledgements) => {
      for (const { seq, id, headId, durability } of acknowledgements) {
        if (output.isJson) await output.object({ kind: "ack", seq, id, headId, durability });
        else await output.line(`${seq} ${id}`);
      }
      await output.flush();
    },
  });
  return 0;
}

/** @throws {ThroughlineError} KEY_INVALID, KEY_AGENT_MISMATCH */
function assertAddress({ scope }: CommandContext, text: string): void {
  if (refsOf(text, scope).length > 0 || isSessionId(text)) return;
  throw unusableKey(text);
}

function unusableKey(text: string): ThroughlineError {
  return new ThroughlineError("KEY_INVALID", `The session key ${JSON.stringify(text)} cannot be used.`, {
    outcome: "not-applied",
  });
}

function checkLimits(store: SessionStore, { batch, durability }: AppendCommandOptions): void {
  const { limits, durabilities, name } = store.capabilities;
  if (batch !== undefined && batch > limits.batchRecords) {
    throw usageError(`--batch ${batch} is more than the ${limits.batchRecords} records this store takes at once.`);
  }
  if (durability !== undefined && !durabilities.includes(durability)) {
    throw usageError(`--durability ${durability}: the ${name} store has ${durabilities.join(", ")}.`, {
      durability,
      durabilities,
    });
  }
}

async function sessionFor(
  { scope, signal }: CommandContext,
  store: SessionStore,
  text: string,
  expectHead: string | undefined,
): Promise<SessionRef> {
  const refs = refsOf(text, scope);
  for (const ref of refs) if ((await store.load(ref, { signal })) !== null) return ref;
  try {
    return (await resolveSession(store, text, scope, { isExact: true, signal })).ref;
  } catch (error) {
    const isMissing = ThroughlineError.isInstance(error) && error.code === "SESSION_NOT_FOUND";
    // A caller that expects a head record means an existing session.
    if (!isMissing || (expectHead !== undefined && expectHead !== "")) throw error;
  }
  const [ref] = refs;
  if (ref === undefined) throw unusableKey(text);
  return (await openSession(store, ref, { random: systemRandom })).state.ref;
}

async function* preceded(
  first: DraftLine,
  rest: AsyncGenerator<DraftLine, void, void>,
): AsyncGenerator<DraftLine, void, void> {
  yield first;
  yield* rest;
}
