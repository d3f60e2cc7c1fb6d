import { commandText, type Fields, isFields } from "@throughline/core/internal";

/** States what a call changes in one file, as far as its arguments say. */
export interface FileChange {
  /** Holds pairs of texts; an empty text before is a new file or an insertion. */
  readonly edits: readonly { readonly before: string; readonly after: string }[];
  /** Holds a patch in the words of the tool; null without one. */
  readonly patch: string | null;
  /** States that the call writes the whole file, so that the text before is not known. */
  readonly isWhole: boolean;
}

const beforeNames: readonly string[] = ["old_text", "old_string", "oldText", "oldString", "old_str", "search"];
const afterNames: readonly string[] = ["new_text", "new_string", "newText", "newString", "new_str", "replace"];
const contentNames: readonly string[] = ["content", "file_text", "contents", "new_source"];
const patchNames: readonly string[] = ["input", "patch", "patchText", "patch_text", "diff"];
const listNames: readonly string[] = ["edits", "replacements"];

/** Reads the arguments of a call that writes a file; null if they hold no change that is known. */
export function fileChangeOf(args: unknown): FileChange | null {
  if (typeof args === "string") return isPatch(args) ? patchChange(args) : null;
  if (!isFields(args)) return null;
  const lists = listNames.flatMap((name) => (Array.isArray(args[name]) ? (args[name] as readonly unknown[]) : []));
  const edits = [args, ...lists.filter(isFields)].flatMap(editOf);
  if (edits.length > 0) return { edits, patch: null, isWhole: false };
  const patch = [...patchNames.map((name) => args[name]), commandText(args)].find(isPatch);
  if (patch !== undefined) return patchChange(patch);
  const content = textOf(args, contentNames);
  return content === null ? null : { edits: [{ before: "", after: content }], patch: null, isWhole: true };
}

function patchChange(patch: string): FileChange {
  return { edits: [], patch: withoutShell(patch), isWhole: false };
}

export function editOf(fields: Fields): FileChange["edits"] {
  const after = textOf(fields, afterNames);
  const before = textOf(fields, beforeNames);
  return after === null || before === null ? [] : [{ before, after }];
}

function textOf(fields: Fields, names: readonly string[]): string | null {
  const text = names.map((name) => fields[name]).find((value) => typeof value === "string");
  return typeof text === "string" ? text : null;
}

function isPatch(text: unknown): text is string {
  return typeof text === "string" && (text.includes("*** Begin Patch") || text.startsWith("--- "));
}

const begin = "*** Begin Patch";
const end = "*** End Patch";

function withoutShell(patch: string): string {
  const from = patch.indexOf(begin);
  if (from === -1) return patch;
  const to = patch.indexOf(end, from);
  return patch.slice(from + begin.length, to === -1 ? undefined : to).trim();
}

/** Returns the lines of Claude Code's `structuredPatch` in the details of a result; null without one. */
export function structuredPatchOf(details: unknown): readonly string[] | null {
  const hunks = isFields(details) ? details["structuredPatch"] : null;
  if (!Array.isArray(hunks) || hunks.length === 0) return null;
  const lines = (hunks as readonly unknown[]).flatMap((hunk): readonly string[] => {
    if (!isFields(hunk) || !Array.isArray(hunk["lines"])) return [];
    const own = (hunk["lines"] as readonly unknown[]).filter((line) => typeof line === "string");
    return [`@@ line ${Number(hunk["newStart"])} @@`, ...own];
  });
  return lines.length > 0 ? lines : null;
}

/** Returns Claude Code's `structuredPatch` in the details of a result as a unified diff; null without one. */
export function unifiedPatchOf(details: unknown): string | null {
  const hunks = isFields(details) ? details["structuredPatch"] : null;
  if (!Array.isArray(hunks) || hunks.length === 0) return null;
  const parts = (hunks as readonly unknown[]).flatMap((hunk) => {
    if (!isFields(hunk) || !Array.isArray(hunk["lines"])) return [];
    const { oldStart, oldLines, newStart, newLines } = hunk;
    const lines = (hunk["lines"] as readonly unknown[]).filter((line) => typeof line === "string");
    return [`@@ -${Number(oldStart)},${Number(oldLines)} +${Number(newStart)},${Number(newLines)} @@`, ...lines];
  });
  return parts.length > 0 ? parts.join("\n") : null;
}
