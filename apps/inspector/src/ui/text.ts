import { visibleText } from "@throughline/transcript-view/internal";

/** Returns a text of a session as the page shows it: invisible characters and those that turn the direction are signs. */
export function shown(text: string | null | undefined): string {
  return text === null || text === undefined ? "" : visibleText(text);
}
