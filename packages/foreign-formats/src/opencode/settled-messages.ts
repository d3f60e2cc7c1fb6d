import { isFields, type Fields } from "@throughline/core/internal";

/**
 * Holds back a reply that the program is still writing, and the lines after it, because its row or file will change. An
 * unfinished reply before a later reply was left by a crash, so it is released.
 */
export class SettledMessages {
  #held: string[] = [];

  /** Returns the lines that will not change any more, in order. The new line may be held back. */
  after(info: Fields, line: string): readonly string[] {
    const settled = info["role"] === "assistant" ? this.#held.splice(0) : [];
    if (this.#held.length === 0 && !isOpen(info)) return [...settled, line];
    this.#held.push(line);
    return settled;
  }
}

/**
 * Returns a sentence for people about a reply that is held back. Null means that the newest reply is finished, or that
 * there is none.
 * @param newest the newest message that is a reply
 */
export function heldBack(newest: { readonly id: string; readonly info: Fields } | null): string | null {
  if (newest === null || !isOpen(newest.info)) return null;
  return `The reply ${newest.id} has no end: opencode is writing it, or was stopped. It and what follows it are imported once it ends or a later reply is there.`;
}

function isOpen({ role, time, error }: Fields): boolean {
  return role === "assistant" && error === undefined && isFields(time) && time["completed"] === undefined;
}
