import type { SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { buildContext, renderText } from "@throughline/history";

/**
 * A prompt that gives the earlier messages to an empty session: the newest whole messages that fit, and how much is
 * left out.
 */
export async function promptWithHistory(
  store: SessionStore,
  ref: SessionRef,
  options: { readonly prompt: string; readonly beforeSeq: number; readonly maxCharacters: number },
): Promise<string> {
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref, { beforeSeq: options.beforeSeq })) records.push(...page.records);
  const headId = records.findLast(({ side }) => !side)?.id ?? null;
  const whole = renderText(buildContext(records, { headId }), { toolResultChars: 2000 });
  if (whole === "") return options.prompt;
  const { text, leftOut } = newest(whole, options.maxCharacters);
  const gap = leftOut === 0 ? "" : `[${leftOut} earlier characters are left out]\n\n`;
  return `The conversation so far, from its record:\n\n<conversation>\n${gap}${text}\n</conversation>\n\n${options.prompt}`;
}

function newest(whole: string, maxCharacters: number): { readonly text: string; readonly leftOut: number } {
  if (whole.length <= maxCharacters) return { text: whole, leftOut: 0 };
  const from = whole.length - maxCharacters;
  // A message begins with its label at the beginning of a line, and with nothing else.
  const start = whole.indexOf("\n\n[", from);
  const text = start < 0 ? whole.slice(from).toWellFormed() : whole.slice(start + 2);
  return { text, leftOut: whole.length - text.length };
}
