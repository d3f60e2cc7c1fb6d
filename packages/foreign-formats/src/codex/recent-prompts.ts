import type { Fields } from "@throughline/core/internal";
import type { RecordBody } from "../unit-records.ts";

/** Codex keeps 20,000 tokens of prompts and counts 4 bytes for each token. */
const mostCharacters = 80_000;

/** A compaction of an older version keeps the newest prompts beside its summary. */
export class RecentPrompts {
  readonly #texts: string[] = [];
  #length = 0;

  add(body: RecordBody): void {
    const text = textOf((body["message"] as Fields)["content"]).slice(-mostCharacters);
    if (text === "") return;
    this.#texts.push(text);
    this.#length += text.length;
    while (this.#length > mostCharacters && this.#texts.length > 1) this.#length -= this.#texts.shift()?.length ?? 0;
  }

  /** Codex replaces the conversation with the prompts and the summary in this form. */
  itemsWith(summary: string): readonly Fields[] {
    const texts = [...this.#texts, summary === "" ? "(no summary available)" : summary];
    return texts.map((text) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] }));
  }
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return (content as readonly Fields[]).flatMap(({ text }) => (typeof text === "string" ? [text] : [])).join("\n");
}
