const heading = "# Instructions\n\n";
const toolsHeading = "\n\n# Tools\n\n";

/** The words of instructions without the heading that stands over them. With tools behind them they stay as they are. */
export function wordsOfInstructions(text: string): string {
  return text.startsWith(heading) && !text.includes(toolsHeading) ? text.slice(heading.length) : text;
}

/** Instructions as the model was trained to read them. */
export function instructionsOf(words: string): string {
  return words.includes(toolsHeading) ? words : `${heading}${words}`;
}
