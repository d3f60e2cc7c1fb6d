import { quoted, WorkspaceToolRefusal } from "./tool-refusal.ts";

export interface TextChange {
  readonly oldText: string;
  readonly newText: string;
  /** Replaces every occurrence. Otherwise the text must occur exactly once. */
  readonly isForAll: boolean;
}

/**
 * Returns the changed text and the line numbers of the changes.
 *
 * @throws {WorkspaceToolRefusal} when the text is missing or ambiguous, and when the change has no effect
 */
export function replaceText(
  text: string,
  change: TextChange,
  path: string,
): { readonly result: string; readonly lines: readonly number[] } {
  const { oldText, isForAll } = change;
  if (oldText === "") throw refusal("The old text is empty. To write a whole file use write.");
  if (oldText === change.newText) throw refusal("The old and the new text are the same. Nothing was changed.");
  const asked = placesOf(text, oldText);
  // Models write line feeds. A file with CRLF line ends keeps them.
  const isOtherEnds = asked.length === 0 && text.includes("\r\n") && !oldText.includes("\r");
  const { from, to } = isOtherEnds
    ? { from: withOtherEnds(oldText), to: withOtherEnds(change.newText) }
    : { from: oldText, to: change.newText };
  const places = isOtherEnds ? placesOf(text, from) : asked;
  if (places.length === 0) throw refusal(`The old text does not stand in ${quoted(path)}${hint(text, oldText)}.`);
  const lines = linesAt(text, places);
  if (places.length > 1 && !isForAll) {
    const told = lines.slice(0, 10).join(", ") + (lines.length > 10 ? ", …" : "");
    throw refusal(
      `The old text stands in ${quoted(path)} ${places.length} times, at lines ${told}. ` +
        "Add what stands around the one that is meant, or set replace_all.",
    );
  }
  return { result: places.length === 1 ? spliced(text, places[0] ?? 0, from, to) : text.split(from).join(to), lines };
}

function refusal(message: string): WorkspaceToolRefusal {
  return new WorkspaceToolRefusal("arguments", message);
}

function withOtherEnds(text: string): string {
  return text.replaceAll("\n", "\r\n");
}

/** `String.replace` would interpret `$&` in the new text. */
function spliced(text: string, place: number, from: string, to: string): string {
  return text.slice(0, place) + to + text.slice(place + from.length);
}

/** The occurrences must not overlap, because `split` replaces them. */
function placesOf(text: string, part: string): readonly number[] {
  const places: number[] = [];
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) places.push(at);
  return places;
}

function linesAt(text: string, places: readonly number[]): readonly number[] {
  const lines: number[] = [];
  let line = 1;
  let from = 0;
  for (const place of places) {
    for (let at = text.indexOf("\n", from); at >= 0 && at < place; at = text.indexOf("\n", at + 1)) {
      line += 1;
      from = at + 1;
    }
    lines.push(line);
  }
  return lines;
}

/** A text that nearly matches is the most common mistake. The hint lets the model correct it. */
function hint(text: string, oldText: string): string {
  const squeezed = (one: string): string => one.replace(/\s+/g, " ").trim();
  const wanted = squeezed(oldText);
  if (wanted === "" || !squeezed(text).includes(wanted)) return "";
  return ", but it does with other white space: read the file and copy the text exactly";
}
