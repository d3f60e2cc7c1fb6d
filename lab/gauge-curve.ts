// How far the gauge lies off what the provider counts, over the recorded conversations at five windows, turn by turn, and
// the share of counts that lay within the band published before them. Less than nine of ten fails.
// THROUGHLINE_CORPUS=<folder> node --conditions=@throughline/source lab/gauge-curve.ts [every nth reply]
import { join } from "node:path";
import process from "node:process";
import { recordedMessages } from "../packages/guard/test/recorded-messages.ts";
import { gaugeError, replayConversation } from "../packages/guard/test/replay-conversation.ts";
import type { GaugePoint } from "../packages/guard/test/replay-conversation.ts";

const windows: readonly number[] = [8000, 16_000, 32_000, 64_000, 200_000];
const bins = 10;

function row(name: string, points: readonly GaugePoint[]): string {
  if (points.length === 0) return `| ${name} | 0 | | | | | |`;
  const { calls, mean, bias, worst, inBand } = gaugeError(points);
  const counted = points.reduce((sum, point) => sum + point.counted, 0) / points.length;
  const cells = [calls, Math.round(counted), mean.toFixed(1), bias.toFixed(1), worst.toFixed(1), inBand.toFixed(0)];
  return `| ${name} | ${cells.join(" | ")} |`;
}

/** The share of counts within the band, in per cent. */
async function printCurve(conversation: readonly object[], windowTokens: number, everyNth: number): Promise<number> {
  const { points, ...totals } = await replayConversation(conversation, windowTokens, everyNth);
  const { calls, refused, raised, mostCalls, mostCompactions } = totals;
  process.stdout.write(
    `\nwindow ${windowTokens}: ${calls} calls, ${refused} refused, ${raised} raised, at most ${mostCalls} calls a question and ${mostCompactions} compactions a turn\n\n`,
  );
  process.stdout.write(
    "| replies | calls | tokens counted | mean off % | bias % | worst % | in the band % |\n|--|--|--|--|--|--|--|\n",
  );
  const size = Math.ceil(conversation.length / bins);
  for (let bin = 0; bin < bins; bin++) {
    const part = points.filter(({ message }) => Math.floor(message / size) === bin);
    process.stdout.write(`${row(`${bin * size} to ${(bin + 1) * size}`, part)}\n`);
  }
  process.stdout.write(`${row("all", points)}\n`);
  return gaugeError(points).inBand;
}

const folder = process.env["THROUGHLINE_CORPUS"];
if (folder === undefined) {
  process.stderr.write("THROUGHLINE_CORPUS names no folder\n");
  process.exitCode = 2;
} else {
  const everyNth = Number(process.argv[2] ?? 1);
  const shares: number[] = [];
  for (const name of ["large-session", "before-compaction"]) {
    const conversation = recordedMessages(join(folder, "pi", `${name}.jsonl`));
    process.stdout.write(`\n${name}: ${conversation.length} messages, every ${everyNth}. asked\n`);
    for (const windowTokens of windows) shares.push(await printCurve(conversation, windowTokens, everyNth));
  }
  const least = Math.min(...shares);
  process.stdout.write(`\nwithin the band: at least ${least.toFixed(1)} % of the counts at every window\n`);
  if (least < 90) process.exitCode = 1;
}
