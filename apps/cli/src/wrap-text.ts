import stringWidth from "fast-string-width";

/**
 * Breaks lines at spaces to fit a terminal. A word longer than a line stays whole, so that a path or a command can be
 * copied. Lines after a break begin with `indent`, and align with the text behind leading spaces or a list mark.
 * @param width columns of the terminal; null leaves the text as it is
 */
export function wrapText(text: string, width: number | null, indent = ""): string {
  if (width === null || width < 20) return text;
  return text
    .split("\n")
    .map((line) => wrapLine(line, width, indent))
    .join("\n");
}

function wrapLine(line: string, width: number, indent: string): string {
  if (line.length <= width && stringWidth(line) <= width) return line;
  const own = /^ *(?:[-*•] |\d{1,3}\. )?/.exec(line)?.[0] ?? "";
  // A deeper indent would leave no room for words.
  const hanging = `${indent}${" ".repeat(own.length > width / 2 ? 0 : own.length)}`;
  const lines: string[] = [];
  let current = own;
  let used = own.length;
  let isStart = true;
  for (const word of line.slice(own.length).split(" ")) {
    const wordWidth = stringWidth(word);
    if (!isStart && used + 1 + wordWidth > width) {
      lines.push(current.trimEnd());
      current = `${hanging}${word}`;
      used = hanging.length + wordWidth;
    } else {
      current += isStart ? word : ` ${word}`;
      used += wordWidth + (isStart ? 0 : 1);
    }
    isStart = false;
  }
  return [...lines, current].join("\n");
}
