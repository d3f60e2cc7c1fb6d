import { isFields, type Fields } from "@throughline/core/internal";

/**
 * Holds back a reply that is still being written, and what follows it: its row or file will change. Behind a later reply it was
 * left as it is, as by a crash.
 */
export class SettledMessages {
  #held: string[] = [];

  /** The lines that will not change any more, this one among them or not. */
  after(info: Fields, line: string): readonly string[] {
    const settled = info["role"] === "assistant" ? this.#held.splice(0) : [];
    if (this.#held.length === 0 && !isOpen(info)) return [...settled, line];
    this.#held.push(line);
    return settled;
  }
}

function isOpen({ role, time, error }: Fields): boolean {
  return role === "assistant" && error === undefined && isFields(time) && time["completed"] === undefined;
}
