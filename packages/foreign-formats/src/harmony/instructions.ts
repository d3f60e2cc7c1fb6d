const heading = "# Instructions\n\n";
const toolsHeading = "\n\n# Tools\n\n";

/** Instructions that include tools stay unchanged, because their heading separates them from the tools. */
export function wordsOfInstructions(text: string): string {
  return text.startsWith(heading) && !text.includes(toolsHeading) ? text.slice(heading.length) : text;
}

/** The model was trained on instructions below this heading. */
export function instructionsOf(words: string): string {
  return words.includes(toolsHeading) ? words : `${heading}${words}`;
}
