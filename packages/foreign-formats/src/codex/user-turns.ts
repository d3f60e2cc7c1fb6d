import type { ItemKind } from "./codex-items.ts";

/** Where each turn of a person begins, so that a rollback finds what was before it. */
export class UserTurns {
  /** The head before each turn. */
  readonly #heads: (string | null)[] = [];
  /** The head before what the program said right before the next turn. */
  #contextHead: { readonly headId: string | null } | null = null;

  /** @param headId the head before the item */
  note(kind: ItemKind, headId: string | null): void {
    if (kind === "none") return;
    if (kind === "context") {
      this.#contextHead ??= { headId };
      return;
    }
    // What the program says at the beginning of a session stays when its first turn is taken back.
    const before = this.#heads.length === 0 ? null : this.#contextHead;
    if (kind === "prompt") this.#heads.push(before === null ? headId : before.headId);
    this.#contextHead = null;
  }

  /** Takes back the newest turns; gives the head before them. */
  rollBack(count: unknown, headId: string | null): string | null {
    this.#contextHead = null;
    if (typeof count !== "number" || !(count >= 1) || this.#heads.length === 0) return headId;
    const at = Math.max(0, this.#heads.length - Math.trunc(count));
    const before = this.#heads[at] ?? null;
    this.#heads.length = at;
    return before;
  }
}
