import type { SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { buildContext, renderText } from "@throughline/history";

/**
 * Adds the earlier messages to a prompt for an empty session. The newest whole messages that fit are included, and the
 * prompt states how much is left out.
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
  // Every message starts with its label at the start of a line, so the cut looks for the next label.
  const start = whole.indexOf("\n\n[", from);
  const text = start < 0 ? whole.slice(from).toWellFormed() : whole.slice(start + 2);
  return { text, leftOut: whole.length - text.length };
}
