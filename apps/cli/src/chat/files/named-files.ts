import { type Conversation, type NamedFile, readNamedFile, type TurnContent } from "@throughline/agent/internal";
import { ThroughlineError } from "@throughline/core";
import { quote } from "@throughline/core/internal";
import type { CommandContext } from "../../command.ts";
import { sizeText } from "../../counted.ts";

const mostFiles = 20;
const mostAskedMs = 3000;

/** Attaches the files that a message names: `@src/a.ts`, or `@"two words.png"`. */
export class NamedFiles {
  readonly #context: CommandContext;
  readonly #conversation: Conversation;
  /** Holds the files that the person named a second time, after the first was refused with the reason. */
  readonly #agreed = new Set<string>();

  constructor(context: CommandContext, conversation: Conversation) {
    this.#context = context;
    this.#conversation = conversation;
  }

  /**
   * Returns the content of a message: its text, with a block for each file.
   * @param say prints a note
   * @throws {ThroughlineError} FILE_TOO_LARGE, FILE_UNREADABLE, USAGE (also for an image that the model does not read), and
   * what the store throws; nothing was sent
   */
  async contentOf(text: string, say: (note: string) => void): Promise<TurnContent> {
    const names = namesIn(text);
    const files = new Map<string, NamedFile>();
    for (const candidates of names) {
      const found = await this.#first(candidates);
      if (found !== null) files.set(found.name, found);
      else say(`(${quote(`@${candidates[0] ?? ""}`)} names no file here, so only the words are sent)`);
    }
    if (files.size === 0) return text;
    if (files.size > mostFiles)
      throw new ThroughlineError("USAGE", `The message names ${files.size} files; it may have ${mostFiles}.`);
    await this.#assertImagesRead([...files.values()], say);
    const blocks: Awaited<ReturnType<Conversation["keepFile"]>>[] = [];
    for (const file of files.values()) blocks.push(await this.#conversation.keepFile(file));
    const list = [...files.values()].map(({ name, bytes }) => `${name}, ${sizeText(bytes.byteLength)}`).join("; ");
    say(`(sent with ${list})`);
    return [{ type: "text", text }, ...blocks];
  }

  /** A model without images would answer as if it had seen them, or its provider would refuse the whole request. */
  async #assertImagesRead(files: readonly NamedFile[], say: (note: string) => void): Promise<void> {
    const image = files.find(({ mediaType }) => mediaType.startsWith("image/"));
    if (image === undefined) return;
    const { name, model } = this.#conversation.chosen;
    // A server that cannot be asked refuses the request itself, and its error says why. One that does not answer must
    // not hold the message back.
    const signal = AbortSignal.any([this.#context.signal, AbortSignal.timeout(mostAskedMs)]);
    const takesImages = (await model.chat.takesImages?.(model.modelId, signal).catch(() => null)) ?? null;
    if (takesImages === null) say(`(it is not known whether ${name} reads images)`);
    if (takesImages === false)
      throw new ThroughlineError(
        "USAGE",
        `${name} reads no images, so ${quote(image.name)} was not sent, nor the words.`,
        {
          remedy: "Choose a model that does with /model PROVIDER/NAME, or leave the image out.",
        },
      );
  }

  /** The end of a sentence may stand behind a name. */
  async #first(candidates: readonly string[]): Promise<NamedFile | null> {
    for (const name of candidates) {
      const file = await this.#read(name);
      if (file !== null) return file;
    }
    return null;
  }

  async #read(name: string): Promise<NamedFile | null> {
    const { api } = this.#conversation.chosen.model.chat;
    const file = await readNamedFile(this.#context, name, { api, isAgreed: (path) => this.#agreed.has(path) });
    if (file === null || file.kind === "file") return file;
    this.#agreed.add(file.path);
    const why = file.why === "outside" ? "lies outside of this folder" : "is hidden from the model's tools";
    throw new ThroughlineError("USAGE", `${quote(`@${name}`)} ${why}: ${file.path}. Nothing was sent.`, {
      remedy: "Press Enter again to send it.",
    });
  }
}

const named = /(?:^|\s)@(?:"([^"\n]+)"|(\S+))/g;
const sentenceEnds: ReadonlySet<string> = new Set(".,;:!?)]}'\"");

/** Returns for each name the ways to read it. */
function namesIn(text: string): readonly (readonly string[])[] {
  return [...text.matchAll(named)].map(([, quoted, bare = ""]) => {
    if (quoted !== undefined) return [quoted];
    let end = bare.length;
    while (end > 1 && sentenceEnds.has(bare.charAt(end - 1))) end -= 1;
    return end === bare.length ? [bare] : [bare, bare.slice(0, end)];
  });
}
