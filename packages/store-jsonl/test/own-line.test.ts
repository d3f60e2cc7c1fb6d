import { attachEnvelope, detachEnvelope, type LineEnvelope } from "@throughline/openclaw-format/internal";
import { describe, expect, it } from "vitest";
import { ownLine } from "../src/framed-lines.ts";

const texts = [
  '{"type":"message","id":"a","message":{"role":"user","content":"plain"}}',
  '{"type":"message","id":"a","message":{"role":"user","content":"ü \u{1F600} \u2028 \\"_tl\\":{\\"seq\\":1}}"}}',
  '{"a":{"_tl":{"seq":4}}}',
  '{"a":1,"_tl":{"seq":4}}',
  '{"a":1 }',
  "{}",
  " { }\t",
  '{"a":1}\r',
];
const envelopes: readonly LineEnvelope[] = [
  { seq: 0 },
  { seq: 7, at: 1_767_323_045_006, crc: 4_294_967_295 },
  { seq: 123_456_789_012_345, batch: [100, 100], at: 1_767_323_045_006, crc: 1 },
  { seq: 3, idem: "k", entry: { label: "x".repeat(300) } },
];

describe("a line of ours", () => {
  it("is told by its end as by the whole of it, and its bytes are left as they were", () => {
    for (const text of texts)
      for (const envelope of envelopes) {
        const line = attachEnvelope(text, envelope);
        const bytes = Buffer.from(line);
        const read = ownLine(bytes);
        expect({ text: read?.text, envelope: read?.envelope ?? null }).toEqual(detachEnvelope(line));
        expect(read?.isAscii === true && Buffer.byteLength(read.text) !== read.text.length).toBe(false);
        expect(bytes.toString()).toBe(line);
      }
  });

  it("is not what only looks like one, wherever it is cut or changed", () => {
    const line = attachEnvelope(texts[1] ?? "", { seq: 7, batch: [1, 2], at: 5, crc: 6 });
    const whole = Buffer.from(line);
    for (let place = 0; place < whole.length; place++)
      for (const changed of [
        whole.subarray(0, place),
        Buffer.concat([whole.subarray(0, place), Buffer.from(" "), whole.subarray(place)]),
        Buffer.concat([whole.subarray(0, place), Buffer.from([0xff]), whole.subarray(place + 1)]),
        Buffer.concat([whole.subarray(0, place), whole.subarray(place + 1)]),
      ]) {
        const read = ownLine(changed);
        const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(changed);
        const isWellFormed = Buffer.compare(Buffer.from(text), changed) === 0;
        const wanted = isWellFormed ? detachEnvelope(text) : { text: "", envelope: null };
        expect(read === null ? null : read.envelope).toEqual(wanted.envelope);
        if (read !== null) expect(read.text).toBe(wanted.text);
      }
  });
});
