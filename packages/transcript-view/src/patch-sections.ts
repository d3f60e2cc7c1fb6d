/** Holds what a patch of `apply_patch` does to one file. */
interface PatchSection {
  readonly path: string;
  readonly what: "add" | "update" | "delete";
  /** Holds the lines of the section without its first line. */
  readonly text: string;
}

const marks: readonly (readonly [mark: string, what: PatchSection["what"]])[] = [
  ["*** Add File: ", "add"],
  ["*** Update File: ", "update"],
  ["*** Delete File: ", "delete"],
];
const endMark = "*** End Patch";

/** Splits a patch of `apply_patch` by file; empty for a text that is none. A moved file has its old name. */
export function patchSections(patch: string): readonly PatchSection[] {
  const sections: { readonly path: string; readonly what: PatchSection["what"]; readonly lines: string[] }[] = [];
  for (const line of patch.split("\n")) {
    const found = marks.find(([mark]) => line.startsWith(mark));
    if (found !== undefined) sections.push({ path: line.slice(found[0].length).trim(), what: found[1], lines: [] });
    else if (line.startsWith(endMark)) break;
    else sections.at(-1)?.lines.push(line);
  }
  return sections.map(({ path, what, lines }) => ({ path, what, text: lines.join("\n") }));
}

/** Returns the content of a file that a patch adds. */
export function addedContent({ text }: Pick<PatchSection, "text">): string {
  const lines = text.split("\n").filter((line) => line.startsWith("+"));
  return lines.map((line) => `${line.slice(1)}\n`).join("");
}
