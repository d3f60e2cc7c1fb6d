/** Returns how many rows a key moves in a list whose page has this many; undefined for a key that does not move. */
export function stepOf(name: string | null, pageRows: number): number | undefined {
  switch (name) {
    case "up":
    case "ctrl+p":
      return -1;
    case "down":
    case "ctrl+n":
      return 1;
    case "pageUp":
      return -pageRows;
    case "pageDown":
      return pageRows;
    default:
      return undefined;
  }
}
