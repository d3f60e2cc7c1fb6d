import type { Fields } from "@throughline/core/internal";

/** Types of lines that `parentUuid` links to each other. */
export const chainTypes: ReadonlySet<unknown> = new Set(["user", "assistant", "system", "attachment", "progress"]);

/** Fields that every line of the tree repeats: a record keeps them where they changed. */
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

/** What a record states by itself, or by its place. */
const statedFields: ReadonlySet<string> = new Set([
  "type",
  "uuid",
  "parentUuid",
  "timestamp",
  "message",
  "toolUseResult",
  "sourceToolAssistantUUID",
]);

/** Keeps of each line what no record says of it, without what the line before said too. */
export class NativeFields {
  readonly #last = new Map<string, unknown>();

  /** The field `native` of a record; nothing where there is nothing to keep. */
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
