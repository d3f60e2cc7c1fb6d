import { classifyOverflow } from "@throughline/guard";
import { recoveryAction } from "@throughline/guard/internal";
import type { OverflowClassification } from "@throughline/guard";
import { diagnosisJson } from "@throughline/http-api/internal/json";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";

/** A provider's error is small. Longer input is something else, and its beginning is enough. */
const longestBytes = 4 * 1024 * 1024;

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { output, host } = context;
  if (host.stdin.isTTY === true) output.note("Reading from the keyboard; Ctrl-D ends it.");
  const text = await readAll(context);
  if (text.trim() === "") throw usageError("diagnose reads an error from stdin, and there was none.");
  const provider = input.options["provider"] as string | undefined;
  const found = classifyOverflow(parsed(text), provider === undefined ? {} : { provider });
  const action = recoveryAction(found);
  if (output.isJson) await output.object(diagnosisJson(found, action));
  else await print(context, found, action);
  return 0;
}

async function print({ output }: CommandContext, found: OverflowClassification, action: string): Promise<void> {
  const { overflow, kind, category, inputTokens, limitTokens, maxOutputTokens, retryAfterMs, rule } = found;
  await output.line({
    text: overflow ? `an overflow: ${kind}` : `no overflow: ${category}`,
    style: overflow ? "yellow" : "bold",
  });
  const sizes: readonly (readonly [string, number | null, string])[] = [
    ["sent", inputTokens, "tokens"],
    ["limit", limitTokens, "tokens"],
    ["answer", maxOutputTokens, "tokens"],
    ["retry after", retryAfterMs, "ms"],
  ];
  for (const [name, value, unit] of sizes)
    if (value !== null) await output.line(`  ${name.padEnd(12)} ${value.toLocaleString("en")} ${unit}`);
  await output.line(`  ${"rule".padEnd(12)} ${rule}`);
  await output.line(`  ${"the guard".padEnd(12)} ${action}`);
}

/** Returns the text itself for invalid JSON, because errors may be cut off. */
function parsed(text: string): unknown {
  const trimmed = text.replace(/^\uFEFF/, "").trim();
  try {
    const value: unknown = JSON.parse(trimmed);
    // A bare number is a status code; a bare string is the error text.
    if (typeof value === "number") return { status: value };
    return value === null || typeof value === "boolean" ? trimmed : value;
  } catch {
    return trimmed;
  }
}

async function readAll({ host, output, signal }: CommandContext): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  const stop = (): void => void host.stdin.destroy();
  signal.addEventListener("abort", stop, { once: true });
  try {
    for await (const chunk of host.stdin) {
      chunks.push(Buffer.from(chunk as Uint8Array));
      sizeBytes += (chunk as Uint8Array).length;
      if (sizeBytes <= longestBytes) continue;
      output.note(`Only the first ${longestBytes} bytes are looked at.`);
      break;
    }
  } finally {
    signal.removeEventListener("abort", stop);
    host.stdin.destroy();
  }
  return Buffer.concat(chunks).subarray(0, longestBytes).toString("utf8");
}
