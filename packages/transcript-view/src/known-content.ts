import type { FileEdit } from "./file-edits.ts";

/** Follows the content of a file through its changes, as far as the log says it. */
export class KnownContent {
  #text: string | null = null;

  /** Returns the content before the next change; null if the log does not say it. */
  get text(): string | null {
    return this.#text;
  }

  /** Takes a change that did not fail. */
  take({ what, before, after, isEverywhere }: FileEdit): void {
    if (what === "write" || (what === "patch" && after !== null)) this.#text = after;
    else if (what === "edit" && before !== null && after !== null)
      this.#text = this.#replaced(before, after, isEverywhere);
    else this.#text = null;
  }

  #replaced(before: string, after: string, isEverywhere: boolean): string | null {
    const text = this.#text;
    if (text === null || (before !== "" && !text.includes(before))) return null;
    if (before === "") return text === "" ? after : null;
    // A replacement text has no patterns here.
    return isEverywhere ? text.replaceAll(before, () => after) : text.replace(before, () => after);
  }
}
