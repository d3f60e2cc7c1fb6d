import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { AnswerCopy } from "../src/answer-copy.ts";

it("a copy of an answer that comes byte by byte takes little more than its bytes", async () => {
  const bytes = Buffer.alloc(1024 * 1024, "event");
  const copy = new AnswerCopy();
  const before = process.memoryUsage().heapUsed;
  for (let at = 0; at < bytes.length; at++) copy.take(bytes.subarray(at, at + 1));
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 1024 * 1024);
  expect(await copy.text({ "content-type": "text/event-stream" })).toBe(bytes.toString());
  expect([copy.bytes, copy.sha256]).toEqual([bytes.length, createHash("sha256").update(bytes).digest("hex")]);
});

it("an answer of which nothing came, or too much, has its hash and no text", async () => {
  const empty = new AnswerCopy();
  expect([await empty.text({}), empty.sha256]).toEqual(["", createHash("sha256").digest("hex")]);
  const large = new AnswerCopy();
  const piece = Buffer.alloc(1024 * 1024, "x");
  for (let count = 0; count < 33; count++) large.take(piece);
  expect([await large.text({}), large.bytes]).toEqual([null, 33 * 1024 * 1024]);
  expect(large.sha256).toBe(
    createHash("sha256")
      .update(Buffer.alloc(33 * 1024 * 1024, "x"))
      .digest("hex"),
  );
});
