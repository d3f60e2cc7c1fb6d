import { StringDecoder } from "node:string_decoder";
import type { ReadStream } from "node:tty";
import type { Host } from "../../host.ts";
import type { KeyReader } from "./typed-text.ts";

export interface RawInput {
  /** Gives the keys to this reader; until then they wait. */
  readTo(reader: KeyReader): void;
  /**
   * Ends raw mode for a while; what is typed meanwhile is read by others. Keys that wait stay as text: their Enters were
   * pressed before the person saw what comes now.
   */
  pause(): void;
  /** Drops the keys that wait for a reader. */
  forget(): void;
  resume(): void;
  close(): void;
}

const ctrlC = "\u0003";

/**
 * Puts the terminal in raw mode at once, so that no key is lost while the editor loads. `onEnd` runs at the end of the
 * input, and for a Ctrl-C that comes before its reader.
 */
export function openRawInput({ stdin }: Pick<Host, "stdin">, onEnd: () => void): RawInput {
  const decoder = new StringDecoder("utf8");
  let reader: KeyReader | null = null;
  let waiting = "";
  const onData = (chunk: Buffer | string): void => {
    const text = typeof chunk === "string" ? chunk : decoder.write(chunk);
    if (reader !== null) return reader.take(text);
    waiting += text;
    if (text.includes(ctrlC)) onEnd();
  };
  const setRaw = (isRaw: boolean): void => {
    (stdin as Partial<ReadStream>).setRawMode?.(isRaw);
  };
  const resume = (): void => {
    setRaw(true);
    stdin.on("data", onData);
    stdin.resume();
  };
  const pause = (): void => {
    waiting = withoutEnters(waiting);
    stdin.off("data", onData);
    setRaw(false);
    stdin.pause();
  };
  stdin.on("end", onEnd);
  resume();
  return {
    readTo: (given) => {
      reader = given;
      const early = waiting;
      waiting = "";
      if (early !== "") given.take(early);
    },
    pause,
    forget: () => (waiting = ""),
    resume,
    close: () => {
      stdin.off("end", onEnd);
      pause();
      reader?.close();
    },
  };
}

/** An Enter within the text becomes an end of line, and those behind it are dropped. */
function withoutEnters(keys: string): string {
  let end = keys.length;
  while (end > 0 && (keys[end - 1] === "\r" || keys[end - 1] === "\n")) end -= 1;
  return keys.slice(0, end).replaceAll("\r", "\n");
}
