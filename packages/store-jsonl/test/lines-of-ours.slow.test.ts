import { writeFileSync } from "node:fs";
import { attachEnvelope, detachEnvelope } from "@throughline/openclaw-format/internal";
import { decodeLine } from "@throughline/openclaw-format";
import { nodeFiles } from "../src/files.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { framedLines, LinePiece } from "../src/framed-lines.ts";
import type { OwnLine } from "../src/store-envelope.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

const texts = fc.oneof(
  fc.constantFrom(
    "{}",
    " { }\t",
    '{"a":{',
    '{"a":1 }\r',
    '{"a":{"_tl":{"seq":4}}}',
    '{"a":1,"_tl":{"seq":4}}',
    '{,"_tl":{"seq":4}}',
    '{ \t,"_tl":{"seq":4}}',
    '{"a":{,"_tl":{"seq":4}}',
    '{"a":"\\"_tl\\":{\\"seq\\":1}}"}',
    '\ufeff{"a":1}',
    "not json",
  ),
  fc.json().map((json) => `{"type":"message","content":${json.replaceAll("\n", " ")}}`),
);
const counts = fc.oneof(
  fc.nat({ max: 20 }),
  fc.constantFrom(-1, 1.5, 1e21, 999_999_999_999_999, 2 ** 53, 4_294_967_295),
);
const envelopes = fc.oneof(
  fc.record({ seq: counts, batch: fc.tuple(counts, counts), at: counts, crc: counts }, { requiredKeys: ["seq"] }),
  fc.record(
    {
      at: counts,
      seq: counts,
      idem: fc.string(),
      head: fc.constant(null),
      entry: fc.dictionary(fc.string(), fc.string()),
    },
    {
      requiredKeys: ["seq"],
    },
  ),
);
const lines = fc.tuple(texts, fc.option(envelopes)).map(([text, envelope]) => {
  try {
    return envelope === null ? text : attachEnvelope(text, envelope);
  } catch {
    return `${text}${JSON.stringify(envelope)}`;
  }
});
/** What means something to one who reads a line, and what is no UTF-8. */
const pieces = fc.constantFrom(
  ...[
    '"_tl":',
    ',"_tl":',
    ',"_tl":{"seq":1}}',
    '{"seq":',
    ',"at":',
    ',"crc":',
    ',"batch":[',
    ...'{}[],:"\\ \t\r01-.e\u00fc',
  ].map((text) => Buffer.from(text)),
  Buffer.from([0xff]),
  Buffer.from([0xc3]),
  Buffer.from([0x80]),
  Buffer.from([0xed, 0xa0, 0x80]),
  Buffer.from([0xef, 0xbb, 0xbf]),
  Buffer.from([0]),
);
const changes = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 12 }), fc.boolean(), pieces), { maxLength: 3 });
const mutated = fc.tuple(lines, changes).map(([line, wanted]) => {
  let bytes = Buffer.from(line);
  for (const [place, cut, isAtEnd, piece] of wanted) {
    // Most of what matters is at the end of a line.
    const at = isAtEnd ? Math.max(0, bytes.length - (place % 60)) : place % (bytes.length + 1);
    bytes = Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at + cut)]);
  }
  return Buffer.from(bytes.filter((byte) => byte !== 0x0a));
});
const transcripts = fc.array(mutated, { minLength: 1, maxLength: 6 });

function told(line: OwnLine | null): unknown {
  return line === null ? null : { text: line.text, envelope: line.envelope };
}

/** By the whole text of the line. */
function toldByText(bytes: Uint8Array): unknown {
  const source = decodeLine(bytes);
  const { text, envelope } = typeof source === "string" ? detachEnvelope(source) : { text: "", envelope: null };
  return envelope === null ? null : { text, envelope };
}

function joined(parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat(parts.flatMap((part) => [part, Buffer.from("\n")]));
}

describe("whether a line is ours", () => {
  it("is told as by its whole text, whatever the line is and whatever stands in the piece with it", () => {
    fc.assert(
      fc.property(transcripts, (parts) => {
        const bytes = joined(parts);
        const piece = new LinePiece(Buffer.from(bytes));
        let from = 0;
        for (const part of parts) {
          const to = piece.endOf(from);
          const own = piece.ownLine(from, to);
          expect(told(own)).toEqual(toldByText(part));
          if (own?.isAscii === true) expect(Buffer.byteLength(own.text)).toBe(own.text.length);
          from = to + 1;
        }
        expect(piece.bytes.equals(bytes)).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });

  it("is told of the lines of a file as of each by itself, with and without a last line feed", () => {
    const path = `${newFolder()}/lines.jsonl`;
    fc.assert(
      fc.property(transcripts, fc.boolean(), fc.nat({ max: 3 }), (parts, isEnded, long) => {
        // Longer than a piece, so that a line begins in one and ends in another.
        const padded = parts.map((part, index) =>
          index === long ? Buffer.concat([Buffer.from(`{"pad":"${"x".repeat(140_000)}"},`), part]) : part,
        );
        const whole = joined(padded);
        const bytes = isEnded || padded.at(-1)?.length === 0 ? whole : whole.subarray(0, -1);
        writeFileSync(path, bytes);
        const handle = nodeFiles.open(path, "read");
        try {
          const span = { from: 0, to: bytes.length, maxLineBytes: 1_000_000 };
          const seen: unknown[] = [];
          for (const framed of framedLines({ files: nodeFiles, handle, path, ...span }))
            for (const line of framed)
              seen.push([
                line.byteOffset,
                told(line.own()),
                Buffer.from(line.bytes()).toString("latin1"),
                line.isTerminated,
              ]);
          let byteOffset = 0;
          const wanted = padded.map((part, index) => {
            const isTerminated = index < padded.length - 1 || bytes === whole;
            const line = [byteOffset, toldByText(part), part.toString("latin1"), isTerminated];
            byteOffset += part.length + 1;
            return line;
          });
          expect(seen).toEqual(wanted);
        } finally {
          nodeFiles.close(handle);
        }
      }),
      { numRuns: 200 },
    );
  });
});
