import type { Fields } from "@throughline/core/internal";

export const chainTypes: ReadonlySet<unknown> = new Set(["user", "assistant", "system", "attachment", "progress"]);

/** Every line of the tree repeats these fields, so a record keeps them only when they changed. */
const repeatedFields: readonly string[] = [
  "sessionId",
  "cwd",
  "version",
  "gitBranch",
  "userType",
  "entrypoint",
  "slug",
  "isSidechain",
  "permissionMode",
  "promptId",
];

/** A record states these fields by itself or by its position, so `native` leaves them out. */
const statedFields: ReadonlySet<string> = new Set([
  "type",
  "uuid",
  "parentUuid",
  "timestamp",
  "message",
  "toolUseResult",
  "sourceToolAssistantUUID",
]);

/**
 * Keeps the fields of a line that its record does not state. Repeated fields are kept only when they differ from the
 * line before.
 */
export class NativeFields {
  readonly #last = new Map<string, unknown>();

  of(line: Fields): { readonly native?: Fields } {
    const kept = Object.entries(line).filter(([name, value]) => !statedFields.has(name) && this.#isNews(name, value));
    return kept.length === 0 ? {} : { native: Object.fromEntries(kept) };
  }

  #isNews(name: string, value: unknown): boolean {
    if (!repeatedFields.includes(name)) return true;
    if (this.#last.get(name) === value) return false;
    this.#last.set(name, value);
    return true;
  }
}
