const programs: Readonly<Record<string, string>> = {
  "ai-sdk": "Vercel AI SDK",
  aider: "Aider",
  amp: "Amp",
  anthropic: "Anthropic Messages",
  "claude-code": "Claude Code",
  cline: "Cline",
  codex: "Codex",
  "copilot-cli": "GitHub Copilot CLI",
  cursor: "Cursor",
  droid: "Droid",
  gemini: "Gemini CLI",
  goose: "Goose",
  harmony: "Harmony",
  "kimi-cli": "Kimi CLI",
  langgraph: "LangGraph",
  openai: "OpenAI Chat Completions",
  "openai-agents": "OpenAI Agents SDK",
  openclaw: "OpenClaw",
  opencode: "opencode",
  "qwen-code": "Qwen Code",
  sharegpt: "ShareGPT",
};

/** Names the program of a session. A session without one is Throughline's own. */
export function programName(format: string | null): string {
  return format === null ? "Throughline" : (programs[format] ?? format);
}

export const programNames: readonly string[] = Object.keys(programs);

/** `toLocaleString` makes a formatter for each call, which is half of the time of a scrolled frame. */
const numbers = new Intl.NumberFormat("en-US");

export function count(value: number): string {
  return numbers.format(value);
}

export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** States how long ago a time is, in one unit: `3 h`. */
export function ageOf(tsMs: number, nowMs: number = Date.now()): string {
  const ms = Math.max(0, nowMs - tsMs);
  if (ms < minute) return "now";
  if (ms < hour) return `${Math.floor(ms / minute)} min`;
  if (ms < day) return `${Math.floor(ms / hour)} h`;
  if (ms < 60 * day) return `${Math.floor(ms / day)} d`;
  return ms < 730 * day ? `${Math.floor(ms / (30.44 * day))} mo` : `${Math.floor(ms / (365.25 * day))} y`;
}

export function durationOf(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < minute) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < hour) return `${Math.round(ms / minute)} min`;
  return ms < day ? `${(ms / hour).toFixed(1)} h` : `${(ms / day).toFixed(1)} d`;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

function isTime(tsMs: number | null): tsMs is number {
  return tsMs !== null && Math.abs(tsMs) < 8.64e15;
}

export function clockOf(tsMs: number | null): string {
  return isTime(tsMs) ? clock.format(tsMs) : "";
}

export function dateOf(tsMs: number | null): string {
  return isTime(tsMs) ? date.format(tsMs) : "";
}

export function momentOf(tsMs: number | null): string {
  return isTime(tsMs) ? `${date.format(tsMs)}, ${clock.format(tsMs)}` : "";
}

/** Names the part of a list that a time belongs to: today, yesterday, the last days, or its year. */
export function periodOf(tsMs: number, nowMs: number = Date.now()): string {
  const midnight = new Date(nowMs).setHours(0, 0, 0, 0);
  if (tsMs >= midnight) return "Today";
  if (tsMs >= midnight - day) return "Yesterday";
  if (tsMs >= midnight - 7 * day) return "Last 7 days";
  if (tsMs >= midnight - 30 * day) return "Last 30 days";
  return isTime(tsMs) ? String(new Date(tsMs).getFullYear()) : "Unknown time";
}

/** Returns a folder with `~` for a home directory. */
export function folderOf(path: string | null): string {
  return path === null
    ? ""
    : path.replace(/^\/(?:home|Users)\/[^/]{1,64}(?=\/|$)/, "~").replace(/^\/root(?=\/|$)/, "~");
}
