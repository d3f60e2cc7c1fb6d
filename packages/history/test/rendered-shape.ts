import { expect } from "vitest";
import { buildContext } from "@throughline/history";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import type { AnthropicBlock, AnthropicRendering, AnthropicRenderOptions } from "../src/render-anthropic.ts";
import { storedRecords, type RecordSketch } from "./stored-records.ts";

/** The messages of a log; fails the test when the API would refuse them. */
export function render(sketches: readonly RecordSketch[], options: AnthropicRenderOptions = {}): AnthropicRendering {
  const rendering = renderAnthropic(buildContext(storedRecords(sketches)), { trailingAssistant: "keep", ...options });
  expect(validateAnthropic(rendering.messages)).toEqual([]);
  return rendering;
}

/** One line a message: `U` or `A` and its blocks; calls as `?id`, results as `=id`, made-up ones as `!id`. */
export function shape(rendering: AnthropicRendering): string[] {
  return rendering.messages.map(
    (message) => `${message.role === "user" ? "U" : "A"} ${message.content.map(blockShape).join(" ")}`,
  );
}

function blockShape(block: AnthropicBlock): string {
  switch (block.type) {
    case "text":
      return JSON.stringify(block.text);
    case "tool_use":
      return `?${block.id}`;
    case "tool_result":
      return `${block.is_error === true ? "!" : "="}${block.tool_use_id}`;
    default:
      return block.type;
  }
}

/** The repairs, each with its record. */
export const rules = (rendering: AnthropicRendering): string[] =>
  rendering.repairs.map((repair) => `${repair.rule} ${repair.recordId}`);
