import { isPart, textOfParts } from "./message-parts.ts";
import { applyPatch, applyTemplate, type Patch, patchOf, type Template, templateOf } from "./template.ts";

/**
 * How a message was written in a request: pieces of its records' own text, or the first form that was stated with something
 * put in place of its middle. Form 0, which nobody states, is the JSON of a message that is kept as one record. Of a large
 * message it is the text that its parts hold, and every other form is a patch of that.
 */
export type FormText =
  | {
      /** Text that is written out, and ranges of the records' own text. */
      readonly pieces: Template;
    }
  | {
      /** What is put in place of the middle of form 1, or of a large message's text. */
      readonly patch: Patch;
    };

/** A message of a conversation: one record or several, in all the forms it was sent in. */
export class WireNode {
  /** The id of its first record: `m` and its hash. */
  readonly id: string;
  /** 32 hexadecimal digits of its content and its parent's hash. Thinking, cache marks and null fields do not count. */
  readonly hash: string;
  /** The message before it; null for the first of a conversation. */
  readonly parent: WireNode | null;
  /** The messages that follow it, in order of the log; several where the conversation branches. */
  readonly children: WireNode[] = [];
  /** Of the records, in their order: what they hold. A record that was redacted has null. */
  readonly contents: unknown[];
  /** The record that the next message follows. */
  lastId: string;
  /** Stated forms, from form 1 on. One whose exchange is redacted is missing. */
  readonly forms: (FormText | undefined)[] = [];
  /** The form that the newest request has it in. */
  current = 0;
  #currentText: string | null | undefined;

  constructor(parent: WireNode | null, id: string, hash: string, contents: readonly unknown[]) {
    this.parent = parent;
    this.id = id;
    this.hash = hash;
    this.contents = [...contents];
    this.lastId = contents.length > 1 ? `${id}~d${contents.length - 1}` : id;
  }

  /** The messages from the first one to this. */
  get branch(): readonly WireNode[] {
    const nodes: WireNode[] = [this];
    for (let node = this.parent; node !== null; node = node.parent) nodes.push(node);
    return nodes.reverse();
  }

  /** Whether a record of it is an assistant's message. */
  get isReply(): boolean {
    return this.contents.some((content) => roleOf(content) === "assistant");
  }

  /** Whether it is larger than a record may be, and lies in several that hold its text only. */
  get isLarge(): boolean {
    return this.contents.some(isPart);
  }

  /** The text of the newest form; null where that form is missing. */
  get text(): string | null {
    if (this.#currentText === undefined) this.#currentText = this.textOf(this.current);
    return this.#currentText;
  }

  /** Whether a record is redacted: no text of it can be given. */
  get isRedacted(): boolean {
    return this.contents.includes(null);
  }

  /** The text of a form; null where it is missing, or the one that it changes. */
  textOf(form: number): string | null {
    if (form === 0) return textOfParts(this.contents) ?? JSON.stringify(this.contents[0]);
    const stated = this.forms[form - 1];
    if (stated === undefined) return null;
    if ("pieces" in stated) return applyTemplate(stated.pieces, baseOf(this.contents));
    const base = this.#patched;
    return base === null ? null : applyPatch(stated.patch, base);
  }

  /** Takes a form under its number, or under the next one where another writer has used that number. */
  addForm(form: FormText, number: number | null): void {
    const isFree = number !== null && this.forms[number - 1] === undefined;
    this.forms[isFree ? number - 1 : this.forms.length] = form;
  }

  /** The form with this text; null for a text that was never sent. */
  findForm(text: string): number | null {
    if (this.text === text) return this.current;
    for (let form = this.forms.length; form >= 0; form--)
      if (form !== this.current && this.textOf(form) === text) return form;
    return null;
  }

  /** A form for a text that has none yet. */
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

  /** What patches change the middle of. */
  get #patched(): string | null {
    return textOfParts(this.contents) ?? this.textOf(1);
  }

  /** Makes a form, by its number, the current one. */
  use(form: number): void {
    if (this.current !== form) this.#currentText = undefined;
    this.current = form;
  }
}

function roleOf(content: unknown): unknown {
  return typeof content === "object" && content !== null ? (content as { readonly role?: unknown }).role : undefined;
}

/**
 * What the records of a message hold as one text. It is their JSON, arguments of calls as the JSON of their JSON, which is
 * how OpenAI sends them, and what is kept of thinking as it came.
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
