import { type Fields, isFields, pathNames, writtenPaths } from "@throughline/core/internal";
import { editOf, fileChangeOf } from "./file-change.ts";
import { addedContent, patchSections } from "./patch-sections.ts";

/** States one change of one file, as the arguments of a call say it. */
export interface FileEdit {
  /** States the path as the call states it. */
  readonly path: string;
  /** `write` replaces the file, `edit` a text in it, `patch` what a patch says. */
  readonly what: "write" | "edit" | "patch";
  /** Holds the text that is replaced; empty for a new file; null if the call does not say it. */
  readonly before: string | null;
  readonly after: string | null;
  /** Holds the part of a patch that is about the file, without the line that names it. */
  readonly patch: string | null;
  /** States that each place with the text before is replaced, not the first alone. */
  readonly isEverywhere: boolean;
}

const unknown = { before: null, after: null, patch: null, isEverywhere: false } as const;

/** Returns the changes that a call makes, in its order; empty for a call that writes no file. */
export function fileEditsOf(tool: string, args: unknown): readonly FileEdit[] {
  const paths = writtenPaths(tool, args);
  const [path] = paths;
  if (path === undefined) return [];
  const change = fileChangeOf(args);
  if (change?.patch !== undefined && change.patch !== null) return patchEdits(path, change.patch);
  if (change !== null && !change.isWhole && isFields(args)) return replacements(path, args);
  const content = change?.edits[0]?.after ?? null;
  if (content !== null) return [{ ...unknown, path, what: "write", after: content }];
  return paths.map((each) => ({ ...unknown, path: each, what: "edit" }));
}

/** Each section names its file; a unified diff is about the file of the call. */
function patchEdits(path: string, patch: string): readonly FileEdit[] {
  const sections = patchSections(patch);
  if (sections.length === 0) return [{ ...unknown, path, what: "patch", patch }];
  return sections.map(({ path: own, what, text }) => {
    const edit = { ...unknown, path: own, what: "patch", patch: text } as const;
    if (what === "add") return { ...edit, before: "", after: addedContent({ text }) };
    return what === "delete" ? { ...edit, after: "" } : edit;
  });
}

function replacements(path: string, args: Fields): readonly FileEdit[] {
  const lists = [args["edits"], args["replacements"]].flatMap((list) =>
    Array.isArray(list) ? (list as readonly unknown[]).filter(isFields) : [],
  );
  return [args, ...lists].flatMap((fields) => {
    const own = pathNames.map((name) => fields[name]).find((value) => typeof value === "string" && value !== "");
    const isEverywhere = fields["replace_all"] === true || fields["replaceAll"] === true;
    return editOf(fields).map(({ before, after }) => {
      return {
        ...unknown,
        path: typeof own === "string" ? own : path,
        what: "edit" as const,
        before,
        after,
        isEverywhere,
      };
    });
  });
}
