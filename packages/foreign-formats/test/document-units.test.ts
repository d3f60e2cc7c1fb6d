import { createDocumentSplitter } from "@throughline/foreign-formats";
import type { DocumentUnit, ListPlace } from "../src/document-units.ts";
import { describe, expect, it } from "vitest";

const lists: readonly ListPlace[] = [[], ["messages"], ["body", "messages"]];

/** The units of a document that comes in chunks of one size, in a buffer that is used again. */
function cut(text: string, chunkBytes: number, maxUnitBytes = 1e6): readonly DocumentUnit[] {
  const splitter = createDocumentSplitter({ lists, maxUnitBytes });
  const bytes = Buffer.from(text);
  const units: DocumentUnit[] = [];
  const buffer = new Uint8Array(chunkBytes);
  const kept = (unit: DocumentUnit): DocumentUnit => ({ ...unit, bytes: new Uint8Array(unit.bytes) });
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const length = Math.min(chunkBytes, bytes.length - at);
    buffer.set(bytes.subarray(at, at + length));
    units.push(...splitter.push(buffer.subarray(0, length)).map(kept));
    buffer.fill(0);
  }
  return [...units, ...splitter.end()];
}

function shown(units: readonly DocumentUnit[]): readonly string[] {
  return units.map(
    ({ part, bytes, isTerminated }) => `${part}${isTerminated ? "" : "…"} ${Buffer.from(bytes).toString()}`,
  );
}

const documents: readonly (readonly [string, readonly string[]])[] = [
  ["[]", ["head [", "tail ]"]],
  [
    '[1,2 , "a,]\\"" ,{"x":[1,"}"]}\n,null]\n',
    [
      "head [",
      "element 1",
      "element ,2",
      'element  , "a,]\\""',
      'element  ,{"x":[1,"}"]}',
      "element \n,null",
      "tail ]\n",
    ],
  ],
  [
    '{"a":{"messages":[1]},"messages" : [{"b":"]"},{}],"messages":[3]}',
    ['head {"a":{"messages":[1]},"messages" : [', 'element {"b":"]"}', "element ,{}", 'tail ],"messages":[3]}'],
  ],
  ['{"body":{"n":1,"messages":[ ]}}', ['head {"body":{"n":1,"messages":[', "tail  ]}}"]],
  ['{"messages":"[","list":[1]}', ['head… {"messages":"[","list":[1]}']],
  ['{"messages":[{"a":1}', ['head {"messages":[', 'element {"a":1}']],
  ['{"messages":[{"a":1},', ['head {"messages":[', 'element {"a":1}', "tail… ,"]],
  ['{"messages":[{"a":1},{"b', ['head {"messages":[', 'element {"a":1}', 'element… ,{"b']],
  ['{"messages":[{"a":1}],"t":{', ['head {"messages":[', 'element {"a":1}', 'tail… ],"t":{']],
  ["[}}]]{[", ["head [", "tail… }}]]{["]],
  ['\uFEFF["é\u2028"]', ["head \uFEFF[", 'element "é\u2028"', "tail ]"]],
  ["nothing", ["head… nothing"]],
];

describe("a document", () => {
  it.each(documents)("is cut at the elements of its list, however it comes: %s", (text, expected) => {
    for (const chunkBytes of [1, 2, 3, 7, 1000])
      expect([chunkBytes, shown(cut(text, chunkBytes))]).toEqual([chunkBytes, expected]);
  });

  it("is all of its units in order, wherever it is cut off", () => {
    const text = documents.map(([one]) => one).join('{"messages":[');
    for (let length = 0; length <= text.length; length++) {
      const units = cut(text.slice(0, length), 5);
      const bytes = Buffer.concat(units.map((unit) => unit.bytes));
      expect(bytes.toString()).toBe(text.slice(0, length));
      let at = 0;
      for (const { byteOffset, sizeBytes } of units) {
        expect(byteOffset).toBe(at);
        at += sizeBytes;
      }
    }
  });

  it("keeps the beginning of a unit that is too long, and its length", () => {
    const units = cut(`[1,"${"x".repeat(5000)}",2]`, 64, 100);
    expect(units.map(({ bytes, sizeBytes }) => [bytes.length, sizeBytes])).toEqual([
      [1, 1],
      [1, 1],
      [100, 5003],
      [2, 2],
      [1, 1],
    ]);
  });
});
