// Counts the usage in transcripts of other programs. It imports nothing of Throughline, so that it can contradict it.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Each program yields the time, model, tokens [input, read, write, output, reasoning], key and cost of a call. */
const programs = {
  *claude(lines) {
    const outputs = new Map();
    for (const { message: m } of lines)
      if (m?.usage) outputs.set(m.id, Math.max(outputs.get(m.id) ?? 0, m.usage.output_tokens));
    for (const { timestamp, message: m } of lines) {
      const { input_tokens: input, cache_read_input_tokens: read, cache_creation_input_tokens: write } = m?.usage ?? {};
      if (m?.usage) yield [timestamp, m.model, [input, read, write, outputs.get(m.id), 0], m.id];
    }
  },
  *codex(lines) {
    let [scope, model, before] = ["", null, [0, 0, 0, 0]];
    for (const { type, timestamp, payload } of lines) {
      if (type === "session_meta") scope = payload.id;
      if (type === "turn_context") ({ model } = payload);
      const total = payload?.type === "token_count" ? payload.info?.total_token_usage : null;
      if (!total) continue;
      const { input_tokens, cached_input_tokens, output_tokens, reasoning_output_tokens } = total;
      const now = [input_tokens, cached_input_tokens, output_tokens, reasoning_output_tokens];
      const isLess = now.some((count, index) => count < before[index]);
      const [prompt, read, output, reasoning] = now.map((count, index) => count - (isLess ? 0 : before[index]));
      before = now;
      yield [timestamp, model, [prompt - read, read, 0, output, reasoning], scope + JSON.stringify(total)];
    }
  },
  *gemini(lines) {
    for (const { id, timestamp, model, tokens: t } of lines)
      if (t) yield [timestamp, model, [t.input - t.cached, t.cached, 0, t.output + t.thoughts, t.thoughts], id];
  },
  *copilot(lines) {
    for (const { timestamp, data } of lines)
      for (const [model, { usage: u }] of Object.entries(data.modelMetrics ?? {})) {
        const [read, write] = [u.cacheReadTokens, u.cacheWriteTokens];
        yield [timestamp, model, [u.inputTokens - read - write, read, write, u.outputTokens, u.reasoningTokens]];
      }
  },
  *opencode(messages) {
    for (const { info } of messages.filter(({ info: { role } }) => role === "assistant")) {
      const { input, output, reasoning, cache } = info.tokens;
      const tokens = [input, cache.read, cache.write, output + reasoning, reasoning];
      yield [new Date(info.time.created).toISOString(), info.modelID, tokens, info.id, info.cost];
    }
  },
  *pi(lines) {
    for (const [at, { timestamp, message: m }] of lines.entries()) {
      const { input, cacheRead, cacheWrite, output, cost } = m?.usage ?? {};
      const key = `${at} ${timestamp} ${input} ${cacheRead}`;
      if (m?.usage) yield [timestamp, m.model, [input, cacheRead, cacheWrite, output, 0], key, cost.total];
    }
  },
};
const root = process.argv[2];
const seen = new Set();
const sums = {};
const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const paths = files.map(({ parentPath, name }) => join(parentPath, name));
const texts = paths.map((path) => [path.slice(root.length + 1).split("/")[0], readFileSync(path, "utf8")]);
const startOf = ([, text]) => /"timestamp":"([^"]+)"/.exec(text)?.[1] ?? "";
for (const [program, text] of texts.toSorted((one, other) => (startOf(one) < startOf(other) ? -1 : 1))) {
  const isDocument = program === "opencode";
  const content = isDocument ? JSON.parse(text).messages : JSON.parse(`[${text.trim().replaceAll("\n", ",")}]`);
  for (const [timestamp, model, tokens, key = null, usd = 0] of programs[program](content)) {
    const isWhole = tokens.every((count) => Number.isSafeInteger(count) && count >= 0);
    const [input, read, write, output] = tokens;
    const sum = input + read + write + output;
    // A count that the text of the file cannot have is left out, except for sums of several calls.
    const isPossible = isWhole && sum > 0 && (key === null || sum <= 200_000 + text.length);
    if (!isPossible || (key !== null && seen.has(key))) continue;
    seen.add(key);
    const group = (sums[`${timestamp.slice(0, 7)} ${model}`] ??= [0, 0, 0, 0, 0, 0, 0]);
    for (const [index, count] of [1, ...tokens, Math.max(0, usd)].entries()) group[index] += count;
  }
}
process.stdout.write(JSON.stringify(sums));
