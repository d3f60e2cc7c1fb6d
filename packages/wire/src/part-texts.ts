import type { PromptData } from "./exchange-data.ts";
import type { RequestPart } from "./split-request.ts";
import { applyPatch, patchOf } from "./template.ts";

/** The parts of requests that a log has: system prompts, tools. */
export class PartTexts {
  readonly #texts = new Map<string, string>();
  /** The hash of the newest part of each name that is kept whole. */
  readonly #whole = new Map<string, string>();
  readonly #names = new Map<string, string>();

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

  nameOf(hash: string): string | null {
    return this.#names.get(hash) ?? null;
  }

  has(hash: string): boolean {
    return this.#texts.has(hash);
  }

  /** @throws {RangeError} */
  text(hash: string): string {
    const text = this.#texts.get(hash);
    if (text === undefined) throw new RangeError(`The log has no part ${hash}.`);
    return text;
  }

  /** What is to be stored of a part that the log does not have yet. */
  dataOf({ name, hash, text }: RequestPart): PromptData {
    const base = this.#whole.get(name);
    if (base !== undefined) {
      const patch = patchOf(text, this.text(base));
      if (patch[2].length <= text.length / 4) return { name, hash, base, patch };
    }
    return { name, hash, text };
  }
}
