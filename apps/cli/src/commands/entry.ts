import { mergeEntry, resolveSession, shellWord, systemClock, updateEntry } from "@throughline/core/internal";
import { findEntryFieldProblem } from "../entry-fields.ts";
import type { SessionEntry, SessionState } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { jsonLine } from "../terminal-safe.ts";

/**
 * These names are refused: another `sessionId` would begin another session, and `__proto__` is no field of an entry.
 */
const fixed: ReadonlySet<string> = new Set(["sessionId", "__proto__"]);

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const [text = "", action = "get", field, ...rest] = input.arguments;
  const { output, scope, signal } = context;
  const isChange = action === "set" || action === "unset";
  if (!isChange && action !== "get") throw usageError(`entry does get, set and unset, not ${JSON.stringify(action)}.`);
  checkArguments(action, field, rest);
  const store = await context.openStore(isChange ? "write" : "read");
  const found = await resolveSession(store, text, scope, { isExact: isChange, signal });
  const value = rest.length === 0 ? undefined : readValue(rest[0] ?? "", input.options["text"] === true);
  if (action === "set" && field !== undefined) assertMeant(found.entry, text, field, value);
  const state = isChange ? await updateEntry(store, found.ref, (entry) => changed(entry, field ?? "", value)) : found;
  await print(context, state, action === "get" ? field : undefined);
  if (isChange) output.note(`Revision ${state.revision}.`);
  return 0;
}

function checkArguments(action: string, field: string | undefined, rest: readonly string[]): void {
  if (action !== "get" && field === undefined) throw usageError(`entry ${action} needs the name of a field.`);
  if (action === "set" && rest.length !== 1) throw usageError("entry set takes a field and one value.");
  if (action !== "set" && rest.length > 0) throw usageError(`entry ${action} takes no value.`);
  if (action !== "get" && field !== undefined && fixed.has(field))
    throw usageError(`${field} cannot be changed; \`reset\` begins a new session under the key.`);
}

/**
 * Refuses a misspelled field, because no code would read it: `sendpolicy` denies nothing. An existing field was written
 * by a program, so it may be changed.
 */
function assertMeant(entry: SessionEntry, key: string, field: string, value: unknown): void {
  const problem = findEntryFieldProblem(field, value);
  if (problem === null || (problem.meant !== null && Object.hasOwn(entry, field))) return;
  const command = (name: string, given: string): string =>
    `\`throughline entry ${shellWord(key)} set ${name} ${given}\``;
  const typed = typeof value === "string" ? value : jsonLine(value);
  const isText = findEntryFieldProblem(field, typed) === null;
  const remedy =
    problem.meant !== null
      ? `Set it: ${command(problem.meant, shellWord(typed))}.`
      : isText
        ? `If the text is meant: ${command(field, `${shellWord(typed)} --text`)}.`
        : "Use one of the values that the message names.";
  throw usageError(problem.message, { field, value, meant: problem.meant, values: problem.values }, remedy);
}

/** Parses valid JSON and keeps any other text: `true`, `3` and `{"a":1}` become values, `Notes` stays text. */
function readValue(text: string, isText: boolean): unknown {
  if (isText) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Merges like every other writer: the change counts as activity, and the route fields stay consistent. */
function changed(entry: SessionEntry, field: string, value: unknown): SessionEntry {
  if (value === undefined && !Object.hasOwn(entry, field)) return entry;
  return mergeEntry(entry, { [field]: value }, { nowMs: systemClock.nowMs() });
}

async function print({ output }: CommandContext, state: SessionState, field: string | undefined): Promise<void> {
  const { entry, ref, sessionId, revision } = state;
  const shown = field === undefined ? entry : { [field]: Object.hasOwn(entry, field) ? entry[field] : null };
  if (output.isJson) {
    await output.object({ kind: "entry", key: ref.key, sessionId, revision, entry: shown });
    return;
  }
  for (const [name, value] of Object.entries(shown)) {
    const text = typeof value === "string" ? value : jsonLine(value);
    await output.line(...(field === undefined ? [{ text: name, style: "cyan" } as const, `\t${text}`] : [text]));
  }
}
