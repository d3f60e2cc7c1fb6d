import type { TextCutter } from "../text-units.ts";

/** What begins a message, what stands before its words, and what its channel and the form of its words stand behind. */
export const startMark = "<|start|>";
export const messageMark = "<|message|>";
export const channelMark = "<|channel|>";
export const constrainMark = "<|constrain|>";

/** What a message ends with: nothing more, a call, or the end of a reply. */
export const endMark = "<|end|>";
export const callMark = "<|call|>";
const returnMark = "<|return|>";

const stopMarks: readonly string[] = [endMark, callMark, returnMark];

/** No header is longer: names and channels are short. */
const longestHeader = 1000;

/** A message, cut at its marks. */
export interface MarkedMessage {
  /** Null where the role is that of a tool: then the name is the tool's. */
  readonly role: "system" | "developer" | "user" | "assistant" | null;
  readonly name: string | null;
  readonly recipient: string | null;
  readonly channel: string | null;
  /** As the header states it: `<|constrain|>json`, `code`. */
  readonly contentType: string | null;
  /** Null for a header without words: a model is to write them. */
  readonly text: string | null;
  /** Null where the text ends before the message does. */
  readonly stop: string | null;
}

/** Reads a message; null for what has no header. A model's output begins behind the role that was given to it. */
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

/** The numbers of the tokens that begin a message, its channel and its words. */
const [startToken, channelToken, messageToken] = ["200006", "200005", "200008"] as const;

/** Whether a text is numbers of tokens, of which some are marks: what the model wrote before anybody made text of it. */
export function areTokens(beginning: string): boolean {
  const given = beginning.replace(/^\uFEFF/, "").trimStart();
  const [first, ...others] = given.split(/\s+/, 400);
  if (first !== startToken && first !== channelToken) return false;
  // The last number may be cut off.
  return others.includes(messageToken) && /^[\d\s]*$/.test(given.slice(0, 4000));
}

/** A message is a unit, up to the one that begins behind its end. Numbers of tokens have no marks: each line is a unit. */
export function messageCutter(): TextCutter {
  const decoder = new TextDecoder("latin1");
  /** The end of what came before, without white space. */
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

/** Where the words before a place end: behind the last character that is no white space. */
function endOfWords(text: string, place: number): number {
  let end = place;
  while (end > 0 && text.charCodeAt(end - 1) <= 0x20) end -= 1;
  return end;
}

function lineEnds(chunk: Uint8Array): readonly number[] {
  return [...chunk.entries()].flatMap(([at, byte]) => (byte === 0x0a ? [at + 1] : []));
}
