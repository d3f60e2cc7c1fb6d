/** What a summary is asked for. */
export type SectionName = "topics" | "decisions" | "state" | "open";

/** What stands under each heading of a summary, one text for each item. */
export type SummarySections = Readonly<Record<SectionName, readonly string[]>>;

/** The headings as they are asked for and written. */
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

/** The sections as text; those without an item are left out. */
export function writeSections(sections: SummarySections): string {
  return sectionNames
    .filter((name) => sections[name].length > 0)
    .map(
      (name) =>
        `${sectionTitles[name]}:\n${sections[name].map((item) => `- ${item.replaceAll("\n", "\n  ")}`).join("\n")}`,
    )
    .join("\n\n");
}
