/** Names a section of a summary. */
export type SectionName = "topics" | "decisions" | "state" | "open";

/** Holds the items of each section, one text per item. */
export type SummarySections = Readonly<Record<SectionName, readonly string[]>>;

/** Holds the headings for prompts and for written summaries. The parser accepts more variants. */
export const sectionTitles: Readonly<Record<SectionName, string>> = {
  topics: "Topics",
  decisions: "Decisions",
  state: "Current state",
  open: "Open items",
};

export const sectionNames: readonly SectionName[] = ["topics", "decisions", "state", "open"];

export function emptySections(): Record<SectionName, string[]> {
  return { topics: [], decisions: [], state: [], open: [] };
}

export function writeSections(sections: SummarySections): string {
  return sectionNames
    .filter((name) => sections[name].length > 0)
    .map(
      (name) =>
        `${sectionTitles[name]}:\n${sections[name].map((item) => `- ${item.replaceAll("\n", "\n  ")}`).join("\n")}`,
    )
    .join("\n\n");
}
