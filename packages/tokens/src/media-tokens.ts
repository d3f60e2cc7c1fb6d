import type { MediaPart } from "./block-parts.ts";
import { imageSizeOf } from "./image-size.ts";
import type { ImageRule } from "./model-profile.ts";

/** Estimates the tokens of an image or a file. If the size of an image is unreadable, it assumes a large image. */
export function mediaTokens(part: MediaPart, rule: ImageRule): number {
  switch (part.kind) {
    case "image":
      return imageTokens(part.base64, part.isLowDetail, rule);
    case "file":
      return fileTokens(part.base64 === null ? (part.bytes ?? 0) : base64Bytes(part.base64), rule);
    case "opaque":
      // Providers do not publish how they count encrypted thinking. Four bytes per token is the usual density.
      return Math.ceil(base64Bytes(part.base64 ?? "") / 4);
  }
}

function imageTokens(base64: string | null, isLowDetail: boolean, rule: ImageRule): number {
  if (rule.kind === "flat") return rule.tokens;
  const size = base64 === null ? null : imageSizeOf(base64);
  const { widthPx, heightPx } = size ?? { widthPx: unknownEdgePx, heightPx: unknownEdgePx };
  const longPx = Math.max(widthPx, heightPx);
  const shortPx = Math.min(widthPx, heightPx);
  switch (rule.kind) {
    case "pixels": {
      const scale = Math.min(1, rule.longEdgePx / longPx);
      return Math.min(rule.mostTokens, Math.ceil((widthPx * scale * heightPx * scale) / 750));
    }
    case "tiles": {
      if (isLowDetail) return rule.baseTokens;
      const scale = Math.min(1, 2048 / longPx, 768 / shortPx);
      const tiles = Math.ceil((widthPx * scale) / 512) * Math.ceil((heightPx * scale) / 512);
      return rule.baseTokens + rule.tileTokens * tiles;
    }
    case "gemini":
      if (longPx <= 384) return 258;
      return 258 * Math.ceil(widthPx / 768) * Math.ceil(heightPx / 768);
  }
}

/** Links and ids reveal no size, so the estimate assumes this edge length. */
const unknownEdgePx = 2048;

/**
 * Estimates the tokens of a document by its bytes. The rules of thumb for small documents come from Mastra's token
 * estimator (`@mastra/memory` 1.31.0). In a large document nearly all bytes are images of pages, about 300 kB each. A page
 * counts as its provider documents: 258 tokens at Gemini, and 1,500 at Anthropic, which states 1,500 to 3,000 with the
 * text. By the rule for text a scan of 20 MB would count 6,700,000 tokens, and fit no model.
 */
function fileTokens(bytes: number, rule: ImageRule): number {
  switch (rule.kind) {
    case "gemini":
      return Math.max(258, Math.ceil(Math.min(bytes / 20, mostTextTokens + pageTokens(bytes, 258))));
    case "tiles":
      return Math.max(500, Math.ceil(Math.min(bytes / 4, mostTextTokens + pageTokens(bytes, 1500))));
    default:
      return Math.max(1500, Math.ceil(Math.min(bytes / 3, mostTextTokens + pageTokens(bytes, 1500))));
  }
}

const mostTextTokens = 50_000;
const scannedPageBytes = 300_000;

function pageTokens(bytes: number, tokensOfPage: number): number {
  return (bytes / scannedPageBytes) * tokensOfPage;
}

function base64Bytes(base64: string): number {
  return Math.floor((base64.length * 3) / 4);
}
