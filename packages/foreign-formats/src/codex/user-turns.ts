import type { ItemKind } from "./codex-items.ts";

/** Tracks where each turn of a person begins, so that a rollback finds the record before it. */
export class UserTurns {
  /** The list holds the head before each turn, to which a rollback returns. */
  readonly #heads: (string | null)[] = [];
  /** The program may add context before a turn. The field holds the head before that context. */
  #contextHead: { readonly headId: string | null } | null = null;

  /** @param headId the head before the item */
  note(kind: ItemKind, headId: string | null): void {
    if (kind === "none") return;
    if (kind === "context") {
      this.#contextHead ??= { headId };
      return;
    }
    // The context at the beginning of a session stays when a rollback removes the first turn.
    const before = this.#heads.length === 0 ? null : this.#contextHead;
    if (kind === "prompt") this.#heads.push(before === null ? headId : before.headId);
    this.#contextHead = null;
  }

  /** Returns the head before the removed turns, from which the conversation continues. */
  rollBack(count: unknown, headId: string | null): string | null {
    this.#contextHead = null;
    if (typeof count !== "number" || !(count >= 1) || this.#heads.length === 0) return headId;
    const at = Math.max(0, this.#heads.length - Math.trunc(count));
    const before = this.#heads[at] ?? null;
    this.#heads.length = at;
    return before;
  }
}
