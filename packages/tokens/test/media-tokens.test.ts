import { describe, expect, it } from "vitest";
import { createTokenEstimator } from "@throughline/tokens";
import { imageSizeOf } from "../src/image-size.ts";

const bytes = (...values: number[]): string => Buffer.from(values).toString("base64");
const wide = (value: number): [number, number] => [value >> 8, value & 255];
const low = (value: number): [number, number] => [value & 255, value >> 8];
const text = (value: string): number[] => [...Buffer.from(value, "latin1")];

function png(width: number, height: number): string {
  return bytes(
    0x89,
    0x50,
    0x4e,
    0x47,
    13,
    10,
    26,
    10,
    0,
    0,
    0,
    13,
    ...text("IHDR"),
    0,
    0,
    ...wide(width),
    0,
    0,
    ...wide(height),
  );
}

describe("imageSizeOf", () => {
  const jpeg = bytes(
    0xff,
    0xd8,
    0xff,
    0xe1,
    0,
    4,
    1,
    2,
    0xff,
    0xc4,
    0,
    3,
    0,
    0xff,
    0xc2,
    0,
    11,
    8,
    ...wide(480),
    ...wide(640),
    3,
    0,
    0,
    0,
  );
  const riff = [...text("RIFF"), 0, 0, 0, 0, ...text("WEBP")];
  it.each([
    ["PNG", png(640, 480)],
    ["PNG in a link", `data:image/png;base64,${png(640, 480)}`],
    ["GIF", bytes(...text("GIF89a"), ...low(640), ...low(480))],
    ["JPEG", jpeg],
    ["WebP, extended", bytes(...riff, ...text("VP8X"), ...Array<number>(8).fill(0), ...low(639), 0, ...low(479), 0)],
    ["WebP, lossy", bytes(...riff, ...text("VP8 "), ...Array<number>(10).fill(0), ...low(640), ...low(480))],
    [
      "WebP, lossless",
      bytes(...riff, ...text("VP8L"), 0, 0, 0, 0, 0x2f, 0x7f, 0xc2, 0x77, 0, ...Array<number>(8).fill(0)),
    ],
  ])("reads %s", (_, base64) => {
    expect(imageSizeOf(base64)).toEqual({ widthPx: 640, heightPx: 480 });
  });

  it.each([
    ["nothing", ""],
    ["no image", "aGVsbG8="],
    ["a torn header", png(640, 480).slice(0, 20)],
    ["no width", png(0, 480)],
    ["a JPEG that ends", bytes(0xff, 0xd8, 0xff, 0xe1, 0, 2)],
  ])("reads no size out of %s", (_, base64) => {
    expect(imageSizeOf(base64)).toBeNull();
  });
});

describe("images and files", () => {
  const estimator = createTokenEstimator({ loadVocabulary: async () => (slice) => slice.length });

  async function fixedTokens(block: object, modelId: string, provider: string | null = null): Promise<number> {
    return (await estimator.counterFor({ provider, modelId })).countMessages([{ role: "user", content: [block] }])
      .fixedTokens;
  }

  const image = (data: string): object => ({ type: "image", data, mimeType: "image/png" });
  const link = { type: "image_url", image_url: { url: "https://example.com/a.png" } };

  it.each([
    ["a small one, by its pixels", image(png(200, 200)), "claude-opus-4-5", 54],
    ["a large one, at most 1,600", image(png(3000, 3000)), "claude-opus-4-5", 1600],
    ["a long one, scaled down", image(png(3136, 750)), "claude-opus-4-5", 784],
    ["a large one at the resolution of newer models", image(png(2000, 1500)), "claude-opus-4-7", 4000],
    [
      "Anthropic's shape",
      { type: "image", source: { type: "base64", media_type: "image/png", data: png(200, 200) } },
      "claude-opus-4-5",
      54,
    ],
    [
      "tiles",
      { type: "image_url", image_url: { url: `data:image/png;base64,${png(1024, 1024)}` } },
      "gpt-4o",
      85 + 4 * 170,
    ],
    ["low detail", { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } }, "gpt-4o", 85],
    ["Gemini's part", { inlineData: { mimeType: "image/png", data: png(1000, 700) } }, "gemini-2.5-pro", 516],
    ["a small one for Gemini", image(png(300, 300)), "gemini-2.5-pro", 258],
    ["a link, as large as may be", link, "claude-opus-4-5", 1600],
    ["any for an unknown model", image(png(10, 10)), "unheard-of", 1600],
  ])("counts an image: %s", async (_, block, modelId, tokens) => {
    expect(await fixedTokens(block, modelId)).toBe(tokens);
  });

  it("counts an image for Ollama flat", async () => {
    expect(await fixedTokens(image(png(4000, 4000)), "llava", "ollama")).toBe(768);
    const counter = await estimator.counterFor({ provider: "ollama", modelId: "llava" });
    expect(counter.countMessages([{ role: "user", content: "a", images: [png(10, 10)] }]).fixedTokens).toBe(768);
  });

  const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "A".repeat(40_000) } };
  it.each([
    ["claude-opus-4-5", 10_000],
    ["gpt-5", 7500],
    ["gemini-2.5-pro", 1500],
  ])("counts a document for %s by its bytes", async (modelId, tokens) => {
    expect(await fixedTokens(pdf, modelId)).toBe(tokens);
    expect(await fixedTokens({ type: "file", file: { file_id: "f" } }, modelId)).toBeGreaterThan(200);
  });

  it("counts the text of a text document, and the bytes of hidden thinking", async () => {
    const counter = await estimator.counterFor({ provider: null, modelId: "claude-opus-4-5" });
    const shown = { type: "document", title: "T", source: { type: "text", data: "abc" } };
    const hidden = { type: "redacted_thinking", data: "A".repeat(160) };
    expect(counter.countMessages([{ role: "user", content: [shown, hidden] }])).toEqual({
      bareTokens: 4,
      fixedTokens: 30,
      messages: 1,
    });
  });
});
