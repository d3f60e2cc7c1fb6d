import type { PromptData } from "./exchange-data.ts";
import { wholeAt } from "./message-parts.ts";
import type { RequestPart } from "./split-request.ts";
import { applyPatch, patchOf } from "./template.ts";

/** Limits a stored piece in characters, so that its JSON in UTF-8 always fits into a record. */
const mostCharacters = 4 * 1024 * 1024;

/** Holds the parts of requests that the log has stored, such as system prompts and tools. */
export class PartTexts {
  readonly #texts = new Map<string, string>();
  /** Maps each name to the hash of its newest part that is stored as a whole. Patches use it as their base. */
  readonly #whole = new Map<string, string>();
  readonly #names = new Map<string, string>();

  /** Applies the data of the log's next `throughline.prompt`. A patch whose base is missing adds no text. */
  apply(data: PromptData): void {
    const { name, hash } = data;
    this.#names.set(hash, name);
    if ("text" in data) {
      this.#texts.set(hash, data.text);
      this.#whole.set(name, hash);
      return;
    }
    const base = this.#texts.get(data.base);
    if (base !== undefined) this.#texts.set(hash, applyPatch(data.patch, base));
  }

  /** Returns the name of the part with this hash: `system`, or the request member. Null for an unknown hash. */
  nameOf(hash: string): string | null {
    return this.#names.get(hash) ?? null;
  }

  /** Returns whether the log has the text of the part with this hash. */
  has(hash: string): boolean {
    return this.#texts.has(hash);
  }

  /** Returns the text of the part with this hash. @throws {RangeError} when the log does not have it */
  text(hash: string): string {
    const text = this.#texts.get(hash);
    if (text === undefined) throw new RangeError(`The log has no part ${hash}.`);
    return text;
  }

  /** Returns the data to store for a new part. A part that is too large for one record becomes several pieces. */
  dataOf({ name, hash, text }: RequestPart): readonly PromptData[] {
    const base = this.#whole.get(name);
    if (base !== undefined) {
      const patch = patchOf(text, this.text(base));
      if (patch[2].length <= Math.min(text.length / 4, mostCharacters)) return [{ name, hash, base, patch }];
    }
    if (text.length <= mostCharacters) return [{ name, hash, text }];
    const data: PromptData[] = [];
    for (let from = 0; from < text.length;) {
      const to = wholeAt(text, from + mostCharacters);
      const before = data.at(-1);
      const own = to < text.length ? `${hash}.${data.length}` : hash;
      const more = text.slice(from, to);
      if (before === undefined) data.push({ name, hash: own, text: more });
      else data.push({ name, hash: own, base: before.hash, patch: [from, 0, more] });
      from = to;
    }
    return data;
  }
}
