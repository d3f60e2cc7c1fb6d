import { asText } from "../as-text.ts";
import {
  providerMappings,
  type AssistantTurn,
  type ProviderRules,
  type ReplayTurn,
  type ReplayUserBlock,
} from "@throughline/history/internal";
import type { FormatWriter, WriteOptions, WrittenSession } from "../format-writer.ts";
import { reportFailures, reportRole } from "../message-texts.ts";
import { WrittenConversation } from "../write-conversation.ts";
import { LossLog } from "../write-losses.ts";
import { callMark, channelMark, constrainMark, endMark, messageMark, readMarked, startMark } from "./harmony-marks.ts";
import { instructionsOf } from "./instructions.ts";
import { recipientOf } from "./tool-names.ts";

const { rules: chatRules } = providerMappings.openai({});

/**
 * A name ends at white space or a mark, so those characters are forbidden. The format is text only, so images are left
 * out.
 */
const rules: ProviderRules = {
  ...chatRules,
  toolNames: { forbidden: /[\s<|]/g, maxLength: 200 },
  imageTypes: new Set(),
  fileTypes: new Set(),
  imageLinks: false,
  resultsInCallOrder: true,
  trailingAssistant: () => "keep",
};

/** The writer renders the messages that a model would get now, in the form for gpt-oss. */
export const harmonyWriter: FormatWriter = {
  writesHistory: false,
  isText: true,
  write: (session, options) => new HarmonyText(session, options).all(),
  sessionId: ({ sessionId }) => sessionId,
  path: ({ sessionId }) => [`${sessionId}.harmony.txt`],
};

interface RenderedMessage {
  readonly author: string;
  /** The header holds the text between the author and the words. */
  readonly header: string;
  readonly text: string;
  readonly stop: string;
  readonly recordId: string | null;
  readonly channel: "analysis" | "commentary" | "final" | null;
}

class HarmonyText {
  readonly #session: WrittenSession;
  readonly #losses: LossLog;
  readonly #conversation: WrittenConversation;
  /** A result's author is the recipient of its call, so the map keeps that by call id. */
  readonly #tools = new Map<string, string>();

  constructor(session: WrittenSession, { onLoss }: WriteOptions) {
    this.#session = session;
    // Thinking is text in this format, so it stays whichever model wrote it.
    this.#losses = new LossLog(onLoss, new Set(["thinking-removed", "empty-message-removed"]));
    this.#conversation = new WrittenConversation(session, rules, this.#losses);
  }

  *all(): Generator<string | undefined> {
    const messages: RenderedMessage[] = [];
    for (const turn of this.#conversation.context()) {
      if (turn !== undefined) messages.push(...this.#turn(turn));
      yield;
    }
    let start = this.#opening(messages[0]);
    for (const { author, header, text, stop } of this.#shown(messages)) {
      yield `${start ?? startMark + author}${header}${messageMark}${text}${stop}`;
      start = null;
    }
    if (this.#session.records.some(({ type }) => type === "message"))
      this.#losses.add({ what: "changed", kind: "messages without time and usage", recordId: null });
    if (this.#session.writtenSeq !== undefined) return;
    for (const recordId of this.#conversation.unshownThinking())
      this.#losses.add({ what: "left-out", kind: "thinking", recordId });
  }

  /**
   * The file may end within a message. The returned text replaces the start of the first new message, so that it
   * continues that message or closes it.
   */
  #opening(first: RenderedMessage | undefined): string | null {
    const last = first === undefined ? null : readMarked(this.#session.lastUnit ?? "");
    if (first === undefined || last === null || last.stop !== null) return null;
    if (last.text !== null) return `${endMark}${startMark}${first.author}`;
    if (last.role === "assistant" && last.channel === null && first.author.startsWith("assistant"))
      return first.author.slice("assistant".length);
    this.#losses.add({ what: "made", kind: "reply where the file asks for one", recordId: null });
    const channel = last.channel === null ? `${channelMark}final` : "";
    return `${channel}${messageMark}${endMark}${startMark}${first.author}`;
  }

  /**
   * The model does not get the thinking that led to earlier answers. Thinking before the first answer is therefore left
   * out when the text ends with an answer.
   */
  *#shown(messages: readonly RenderedMessage[]): Generator<RenderedMessage> {
    const firstFinal = messages.findIndex(({ channel }) => channel === "final");
    const endsFinal = messages.findLast(({ channel }) => channel !== null)?.channel === "final";
    const isDropped = endsFinal && this.#session.writtenSeq === undefined;
    for (const [at, message] of messages.entries()) {
      if (isDropped && at < firstFinal && message.channel === "analysis")
        this.#losses.add({ what: "left-out", kind: "thinking before an answer", recordId: message.recordId });
      else yield message;
    }
  }

  *#turn(turn: ReplayTurn): Generator<RenderedMessage> {
    const { recordId } = turn;
    if (turn.role === "assistant") return yield* this.#reply(turn);
    const more = { header: "", stop: endMark, channel: null, recordId };
    if (turn.role === "system")
      return yield { ...more, author: "developer", text: this.#plain(instructionsOf(turn.text), recordId) };
    reportRole(turn, this.#conversation, this.#losses);
    reportFailures(turn, this.#conversation, this.#losses);
    for (const { callId, content, recordId: resultId } of turn.results) {
      const author = this.#tools.get(callId) ?? recipientOf("tool");
      const header = ` to=assistant${channelMark}commentary`;
      yield { ...more, author, header, text: this.#plain(textOf(content), resultId), recordId: resultId };
    }
    if (turn.blocks.length > 0 || turn.results.length === 0)
      yield { ...more, author: "user", text: this.#plain(textOf(turn.blocks), recordId) };
  }

  *#reply(turn: AssistantTurn): Generator<RenderedMessage> {
    const { recordId, blocks } = turn;
    const origin = this.#conversation.originOf(recordId);
    const part = { author: "assistant", stop: endMark, recordId };
    for (const { thinking, signature, redacted } of this.#conversation.thinkingOf(turn)) {
      if (redacted || thinking === "") this.#losses.tell("left-out", "hidden thinking", origin);
      else if (signature !== null) this.#losses.tell("left-out", "signature of thinking", origin);
      if (redacted || thinking === "") continue;
      yield {
        ...part,
        header: `${channelMark}analysis`,
        channel: "analysis",
        text: this.#plain(thinking, recordId),
      };
    }
    const calls = blocks.filter((block) => block.type === "toolCall");
    const text = textOf(blocks);
    const channel = calls.length > 0 ? "commentary" : "final";
    if (text !== "" || calls.length === 0)
      yield { ...part, header: `${channelMark}${channel}`, channel, text: this.#plain(text, recordId) };
    for (const { id, name, arguments: given } of calls) {
      const recipient = recipientOf(name);
      this.#tools.set(id, recipient);
      yield {
        author: `assistant to=${recipient}`,
        header: `${channelMark}commentary ${constrainMark}json`,
        channel: "commentary",
        text: this.#plain(JSON.stringify(given), recordId),
        stop: callMark,
        recordId,
      };
    }
  }

  /** Text that looks like a mark would end the message, so it is changed. */
  #plain(text: string, recordId: string | null): string {
    const plain = text.replaceAll(marks, "< |$1|>");
    if (plain !== text) this.#losses.add({ what: "changed", kind: "words that are a mark here", recordId }, "mark");
    return plain;
  }
}

const marks = /<\|([a-z_0-9]{1,20})\|>/g;

function textOf(blocks: readonly (ReplayUserBlock | { readonly type: string })[]): string {
  const texts = blocks.flatMap((block) => (block.type === "text" && "text" in block ? [asText(block.text)] : []));
  return texts.join("\n\n");
}
