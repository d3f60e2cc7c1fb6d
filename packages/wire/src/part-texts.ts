import type { PromptData } from "./exchange-data.ts";
import { wholeAt } from "./message-parts.ts";
import type { RequestPart } from "./split-request.ts";
import { applyPatch, patchOf } from "./template.ts";

/** Of a piece that is stored. As JSON in UTF-8 it is a record whatever it is made of. */
const mostCharacters = 4 * 1024 * 1024;

/** The parts of requests that a log has: system prompts, tools. */
export class PartTexts {
  readonly #texts = new Map<string, string>();
  /** The hash of the newest part of each name that is kept whole. */
  readonly #whole = new Map<string, string>();
  readonly #names = new Map<string, string>();

  /** Takes the data of the log's next `throughline.prompt`. A patch of a base that the log lacks adds no text. */
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

  /** The name of the part with this hash: `system`, or that of its member in the request; null for an unknown hash. */
  nameOf(hash: string): string | null {
    return this.#names.get(hash) ?? null;
  }

  /** Whether the log has the text of the part with this hash. */
  has(hash: string): boolean {
    return this.#texts.has(hash);
  }

  /** The text of the part with this hash. @throws {RangeError} when the log does not have it */
  text(hash: string): string {
    const text = this.#texts.get(hash);
    if (text === undefined) throw new RangeError(`The log has no part ${hash}.`);
    return text;
  }

  /** What is to be stored of a part that the log does not have yet: one piece, several of one that is too large for a record. */
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
