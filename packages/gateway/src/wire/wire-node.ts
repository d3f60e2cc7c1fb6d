import { isPart, textOfParts } from "./message-parts.ts";
import { applyPatch, applyTemplate, type Patch, patchOf, type Template, templateOf } from "./template.ts";

/**
 * Describes how a message was written in a request: as pieces of its records' text, or as a patch of form 1. Form 0 is
 * the JSON of a message that is one record; no exchange states it. For a large message, form 0 is the text of its
 * parts, and every other form is a patch of that text.
 */
export type FormText =
  | {
      /** Holds literal text and ranges of the records' text. */
      readonly pieces: Template;
    }
  | {
      /** Replaces the middle of form 1, or of a large message's text. */
      readonly patch: Patch;
    };

/** Holds a message of a conversation: its records, and all forms in which it was sent. */
export class WireNode {
  /** States the id of the first record: `m` and the hash. */
  readonly id: string;
  /**
   * Covers the content and the parent's hash, in 32 hexadecimal digits. Thinking, cache marks and null fields do not
   * count.
   */
  readonly hash: string;
  /** Names the previous message. Null for the first message of a conversation. */
  readonly parent: WireNode | null;
  /** Lists the next messages in the order of the log. There are several when the conversation branches. */
  readonly children: WireNode[] = [];
  /** Lists the contents of the records, in order. A redacted record has null. */
  readonly contents: unknown[];
  /** States the id of the record that the next message follows. */
  lastId: string;
  /** Lists the stated forms from form 1 on. A form whose exchange is redacted is missing. */
  readonly forms: (FormText | undefined)[] = [];
  /** States the form number in the newest request. */
  current = 0;
  #currentText: string | null | undefined;

  constructor(parent: WireNode | null, id: string, hash: string, contents: readonly unknown[]) {
    this.parent = parent;
    this.id = id;
    this.hash = hash;
    this.contents = [...contents];
    this.lastId = contents.length > 1 ? `${id}~d${contents.length - 1}` : id;
  }

  /** Returns the messages from the first one to this one. */
  get branch(): readonly WireNode[] {
    const nodes: WireNode[] = [this];
    for (let node = this.parent; node !== null; node = node.parent) nodes.push(node);
    return nodes.reverse();
  }

  /** Returns whether a record of the message is an assistant message. */
  get isReply(): boolean {
    return this.contents.some((content) => roleOf(content) === "assistant");
  }

  /** Returns whether the message is larger than a record, so that several records hold its text only. */
  get isLarge(): boolean {
    return this.contents.some(isPart);
  }

  /** Returns the text of the newest form. Null when that form is missing. */
  get text(): string | null {
    if (this.#currentText === undefined) this.#currentText = this.textOf(this.current);
    return this.#currentText;
  }

  /** Returns whether a record is redacted. The text of the message is then unavailable. */
  get isRedacted(): boolean {
    return this.contents.includes(null);
  }

  /** Returns the text of a form. Null when the form or its base is missing. */
  textOf(form: number): string | null {
    if (form === 0) return textOfParts(this.contents) ?? JSON.stringify(this.contents[0]);
    const stated = this.forms[form - 1];
    if (stated === undefined) return null;
    if ("pieces" in stated) return applyTemplate(stated.pieces, baseOf(this.contents));
    const base = this.#patched;
    return base === null ? null : applyPatch(stated.patch, base);
  }

  /** Adds a form under its number, or under the next free number when another writer has used that number. */
  addForm(form: FormText, number: number | null): void {
    const isFree = number !== null && this.forms[number - 1] === undefined;
    this.forms[isFree ? number - 1 : this.forms.length] = form;
  }

  /** Returns the number of the form with this text, or null for a text that was never sent. */
  findForm(text: string): number | null {
    if (this.text === text) return this.current;
    for (let form = this.forms.length; form >= 0; form--)
      if (form !== this.current && this.textOf(form) === text) return form;
    return null;
  }

  /** Creates a form for a text that has none yet. */
  newForm(text: string): FormText {
    const parts = textOfParts(this.contents);
    if (parts !== null) return { patch: patchOf(text, parts) };
    const pieces = templateOf(text, baseOf(this.contents));
    const first = this.textOf(1);
    if (first === null) return { pieces };
    const patch = patchOf(text, first);
    const writtenOut = (template: Template): number => JSON.stringify(template).length;
    return patch[2].length <= writtenOut(pieces) ? { patch } : { pieces };
  }

  /** Returns the text that patches change. */
  get #patched(): string | null {
    return textOfParts(this.contents) ?? this.textOf(1);
  }

  /** Makes the form with this number the current one. */
  use(form: number): void {
    if (this.current !== form) this.#currentText = undefined;
    this.current = form;
  }
}

function roleOf(content: unknown): unknown {
  return typeof content === "object" && content !== null ? (content as { readonly role?: unknown }).role : undefined;
}

/**
 * Returns the text of a message's records, from which forms copy. It also has the arguments of calls as JSON inside
 * JSON, which is how OpenAI sends them, and thinking signatures.
 */
function baseOf(contents: readonly unknown[]): string {
  const texts = contents.map((content) => JSON.stringify(content));
  for (const content of contents) {
    const blocks = (content as { readonly content?: unknown } | null)?.content;
    if (!Array.isArray(blocks)) continue;
    for (const block of blocks as readonly Readonly<Record<string, unknown>>[]) {
      if (block["type"] === "toolCall") texts.push(JSON.stringify(JSON.stringify(block["arguments"])));
      if (block["type"] === "thinking" && typeof block["thinkingSignature"] === "string")
        texts.push(block["thinkingSignature"]);
    }
  }
  return texts.join("\n");
}
