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

/**
 * Says that a reply is held back, for a reader; null when the newest reply is finished, or there is none.
 * @param newest the newest message that is a reply
 */
export function heldBack(newest: { readonly id: string; readonly info: Fields } | null): string | null {
  if (newest === null || !isOpen(newest.info)) return null;
  return `The reply ${newest.id} has no end: opencode is writing it, or was stopped. It and what follows it are imported once it ends or a later reply is there.`;
}

function isOpen({ role, time, error }: Fields): boolean {
  return role === "assistant" && error === undefined && isFields(time) && time["completed"] === undefined;
}
