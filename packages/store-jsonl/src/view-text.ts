import { crc32 } from "node:zlib";
import { DeepJson } from "./json-members.ts";
import type { Slices } from "./slices.ts";

/** What is to be written, in parts. */
export interface ViewText {
  readonly parts: readonly Uint8Array[];
  readonly crc: number;
}

/** By own properties: a key like `__proto__` is a key like any other. */
export async function viewText(entries: ReadonlyMap<string, unknown>, slices: Slices): Promise<ViewText> {
  const parts: Uint8Array[] = [];
  let crc = 0;
  const add = (text: string): void => {
    const bytes = Buffer.from(text);
    crc = crc32(bytes, crc);
    parts.push(bytes);
  };
  let text = "";
  let count = 0;
  for (const [key, entry] of entries) {
    text += `${count++ === 0 ? "{\n" : ",\n"}${memberText(key, entry)}`;
    // A pause that is not due costs nothing, and entries may be large.
    await slices.next();
    if (text.length < partLength) continue;
    add(text);
    text = "";
  }
  add(count === 0 ? "{}\n" : `${text}\n}\n`);
  return { parts, crc };
}

const partLength = 64 * 1024;

function memberText(key: string, entry: unknown): string {
  if (entry instanceof DeepJson) return `  ${JSON.stringify(key)}: ${entry.text}`;
  return JSON.stringify(Object.fromEntries([[key, entry]]), null, 2).slice(2, -2);
}
