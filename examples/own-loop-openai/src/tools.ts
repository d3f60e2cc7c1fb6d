import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { ToolCallBlock } from "@throughline/core";
import type OpenAI from "openai";

export const tools: OpenAI.ChatCompletionTool[] = [
  {
    type: "function",
    function: { name: "list_files", description: "Lists the files of the current folder." },
  },
  {
    type: "function",
    function: {
      name: "read_file",
      description: "Reads a text file of the current folder.",
      parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    },
  },
];

/** Runs a tool. What goes wrong is its result: the model reads it. */
export async function runTool({ name, arguments: input, partialJson }: ToolCallBlock): Promise<string> {
  try {
    if (partialJson !== undefined) return `The arguments are not a JSON object: ${partialJson}`;
    if (name === "list_files") return (await readdir(".")).toSorted().join("\n");
    if (name === "read_file") return await readFile(basename(String(input["name"])), "utf8");
    return `There is no tool ${name}.`;
  } catch (error) {
    return `The tool failed: ${String(error)}`;
  }
}
