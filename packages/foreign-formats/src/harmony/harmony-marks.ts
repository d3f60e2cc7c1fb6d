import type { TextCutter } from "../text-units.ts";

/**
 * A message begins with `startMark`, and its words follow `messageMark`. The other two precede the channel and the form
 * of the words.
 */
export const startMark = "<|start|>";
export const messageMark = "<|message|>";
export const channelMark = "<|channel|>";
export const constrainMark = "<|constrain|>";

/** A message ends with one of these marks: `<|end|>` ends a message, `<|call|>` a call, and `<|return|>` a reply. */
export const endMark = "<|end|>";
export const callMark = "<|call|>";
const returnMark = "<|return|>";

const stopMarks: readonly string[] = [endMark, callMark, returnMark];

/** A header is short, because names and channels are. A longer one is not a header. */
const longestHeader = 1000;

export interface MarkedMessage {
  /** The role is null for a tool. The name is then the tool's name. */
  readonly role: "system" | "developer" | "user" | "assistant" | null;
  readonly name: string | null;
  readonly recipient: string | null;
  readonly channel: string | null;
  readonly contentType: string | null;
  /** The text is null for a header without words, which a model is to complete. */
  readonly text: string | null;
  /** The mark is null when the text ends before the message does. */
  readonly stop: string | null;
}

/** A text without a header gives null. A model's output begins after the role that the prompt gave it. */
export function readMarked(unit: string): MarkedMessage | null {
  const given = unit.replace(/^\uFEFF/, "").trimStart();
  const begins = given.startsWith(startMark);
  if (!begins && !given.startsWith(channelMark)) return null;
  const message = begins ? given.slice(startMark.length) : `assistant${given}`;
  const headerEnd = message.indexOf(messageMark);
  const header = headerEnd < 0 ? message : message.slice(0, headerEnd);
  const parts = header.length > longestHeader ? null : readHeader(header);
  if (parts === null) return null;
  if (headerEnd < 0) return { ...parts, text: null, stop: null };
  const words = message.slice(headerEnd + messageMark.length);
  const { at, mark } = firstStop(words);
  return { ...parts, text: words.slice(0, at), stop: mark };
}

function firstStop(words: string): { readonly at: number; readonly mark: string | null } {
  let [at, mark]: [number, string | null] = [words.length, null];
  for (const stop of stopMarks) {
    const found = words.indexOf(stop);
    if (found < 0 || found >= at) continue;
    [at, mark] = [found, stop];
  }
  return { at, mark };
}

const roles = ["system", "developer", "user", "assistant"] as const;

function readHeader(header: string): Omit<MarkedMessage, "text" | "stop"> | null {
  let channel: string | null = null;
  let rest = header;
  const at = header.indexOf(channelMark);
  if (at >= 0) {
    const behind = header.slice(at + channelMark.length);
    channel = /^[^\s<]*/.exec(behind)?.[0] ?? "";
    rest = `${header.slice(0, at)} ${behind.slice(channel.length)}`;
  }
  const [who, ...others] = rest.replace(constrainMark, ` ${constrainMark}`).trim().split(/\s+/);
  if (who === undefined || who === "" || who.startsWith("<|") || who.startsWith("to=")) return null;
  const to = others.find((part) => part.startsWith("to="));
  const contentType = others.filter((part) => part !== to).join(" ");
  const colon = who.indexOf(":");
  const role = roles.find((one) => one === (colon < 0 ? who : who.slice(0, colon))) ?? null;
  const name = role === null ? who : colon < 0 ? null : who.slice(colon + 1);
  return {
    role,
    name,
    recipient: to?.slice("to=".length) ?? null,
    channel,
    contentType: contentType === "" ? null : contentType,
  };
}

/** These token numbers of the vocabulary identify a file of tokens, which has no text marks. */
const [startToken, channelToken, messageToken] = ["200006", "200005", "200008"] as const;

/** The model's output may be stored as token numbers before it was decoded to text. Some of the numbers are marks. */
export function areTokens(beginning: string): boolean {
  const given = beginning.replace(/^\uFEFF/, "").trimStart();
  const [first, ...others] = given.split(/\s+/, 400);
  if (first !== startToken && first !== channelToken) return false;
  // The last number may be cut off.
  return others.includes(messageToken) && /^[\d\s]*$/.test(given.slice(0, 4000));
}

/**
 * Each message is an item, up to the message that begins after its end. Token numbers have no text marks, so each line
 * is an item.
 */
export function messageCutter(): TextCutter {
  const decoder = new TextDecoder("latin1");
  /** The last characters of the previous chunk are kept without white space, because an end mark may be among them. */
  let before = "";
  let isOfTokens: boolean | null = null;
  return (chunk) => {
    const text = decoder.decode(chunk);
    isOfTokens ??= text.trim() === "" ? null : areTokens(text);
    if (isOfTokens === true) return lineEnds(chunk);
    const cuts: number[] = [];
    for (let at = text.indexOf(startMark); at >= 0; at = text.indexOf(startMark, at + startMark.length)) {
      const end = endOfWords(text, at);
      if (stopMarks.some((mark) => (end === 0 ? before.endsWith(mark) : text.endsWith(mark, end)))) cuts.push(at);
    }
    const end = endOfWords(text, text.length);
    if (end > 0) before = text.slice(Math.max(0, end - returnMark.length), end);
    return cuts;
  };
}

function endOfWords(text: string, place: number): number {
  let end = place;
  while (end > 0 && text.charCodeAt(end - 1) <= 0x20) end -= 1;
  return end;
}

function lineEnds(chunk: Uint8Array): readonly number[] {
  return [...chunk.entries()].flatMap(([at, byte]) => (byte === 0x0a ? [at + 1] : []));
}
