/** Marks a text for the terminal; the text itself without colors. */
export type Style = (text: string) => string;

/** The palette of the 16 colors that every terminal has, so that its theme decides. */
export interface Styles {
  readonly bold: Style;
  readonly dim: Style;
  readonly italic: Style;
  readonly underline: Style;
  readonly strike: Style;
  readonly red: Style;
  readonly green: Style;
  readonly yellow: Style;
  readonly magenta: Style;
  readonly cyan: Style;
}

export function createStyles(isColored: boolean): Styles {
  const style =
    (on: number, off: number): Style =>
    (text) =>
      isColored && text !== "" ? `\u001b[${on}m${text}\u001b[${off}m` : text;
  return {
    bold: style(1, 22),
    dim: style(2, 22),
    italic: style(3, 23),
    underline: style(4, 24),
    strike: style(9, 29),
    red: style(31, 39),
    green: style(32, 39),
    yellow: style(33, 39),
    magenta: style(35, 39),
    cyan: style(36, 39),
  };
}
