import { basename, join } from "node:path";
import { foreignFormatNames } from "@throughline/foreign-formats/internal";
import type { ForeignFormatName } from "@throughline/foreign-formats/internal";
import { isText, sampleTexts, type SampleText, textOf } from "../../foreign-formats/test/sample-texts.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A small session of a format, in one of its layouts. */
export interface ShapedSample {
  readonly what: string;
  readonly format: ForeignFormatName;
  /** The name of the file, below a folder where the program looks at that. */
  readonly name: string;
  readonly sample: SampleText;
}

const user = { type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] };
const call = { type: "function_call", name: "shell", arguments: "{}", call_id: "c1" };
const output = { type: "function_call_output", call_id: "c1", output: "ok" };
const codexDocument = {
  session: { timestamp: "2025-05-17T21:29:00.000Z", id: "019e03b2-11a2-7320-9098-5d831813e66c", instructions: "" },
  items: [user, call, output, { ...user, role: "assistant", content: [{ type: "output_text", text: "Done." }] }],
};
const clineSession = {
  version: 1,
  updated_at: "2026-11-30T13:30:40.129Z",
  agent: "lead",
  sessionId: "1_a",
  messages: [
    { id: "m1", role: "user", content: [{ type: "text", text: "Hi" }], ts: 1_796_045_439_402 },
    { id: "m2", role: "assistant", content: [{ type: "tool_use", id: "c1", name: "f", input: {} }] },
    {
      id: "m3",
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "c1", content: [{ query: "a" }] }],
    },
  ],
  system_prompt: "S",
};
const geminiDocument = {
  sessionId: "g1",
  projectHash: "743e",
  startTime: "2026-06-30T10:00:00.000Z",
  messages: [
    { id: "m1", timestamp: "2026-06-30T10:00:00.000Z", type: "user", content: "Hi" },
    { id: "m2", timestamp: "2026-06-30T10:00:01.000Z", type: "gemini", content: "Yo", thoughts: [], model: "gemini-3" },
  ],
};

/** Every layout of a file that a program writes: a database has no beginning that could be read without its end. */
export const shapedSamples: readonly ShapedSample[] = [
  ...foreignFormatNames
    .filter((name) => name !== "langgraph" && name !== "cursor")
    .map((format) => {
      const { path } = sampleTexts[format];
      const name = format === "cline" ? join("tasks", "1", basename(path)) : basename(path);
      return { what: format, format, name, sample: sampleTexts[format] };
    }),
  ...(
    [
      ["codex", codexDocument],
      ["cline", clineSession],
      ["gemini", geminiDocument],
    ] as const
  ).map(([format, value]) => ({
    what: `${format}, a document`,
    format,
    name: "session.json",
    sample: { path: "/p/session.json", values: [value] },
  })),
];

/** Another shape of the same file. */
export interface Shape {
  readonly name: string;
  /** States whether a model gets the same of the shaped file. `messages` leaves the model out. */
  readonly isSame: boolean | "messages";
  applies(sample: SampleText): boolean;
  of(sample: SampleText, random: () => number): Uint8Array;
}

const isLines = ({ path }: SampleText): boolean => !path.endsWith(".json") && !isText(path);
const isDocument = ({ path }: SampleText): boolean => path.endsWith(".json");
const isJson = ({ path }: SampleText): boolean => !isText(path);
const bytesOf = (sample: SampleText): Uint8Array => Buffer.from(textOf(sample));

export const shapes: readonly Shape[] = [
  { name: "as it is", isSame: true, applies: () => true, of: bytesOf },
  {
    name: "with a byte order mark",
    isSame: true,
    applies: isJson,
    of: (sample) => Buffer.from(`\uFEFF${textOf(sample)}`),
  },
  {
    name: "with carriage returns",
    isSame: true,
    applies: isLines,
    of: (sample) => Buffer.from(textOf(sample).replaceAll("\n", "\r\n")),
  },
  {
    name: "without its last line feed",
    isSame: true,
    applies: isLines,
    of: (sample) => Buffer.from(textOf(sample).replace(/\n$/, "")),
  },
  {
    name: "on many lines",
    isSame: true,
    applies: isDocument,
    of: ({ values: [value] }, random) => Buffer.from(`${JSON.stringify(value, null, random() < 0.5 ? 2 : "\t")}\n`),
  },
  {
    // A request then states its model behind the replies.
    name: "with fields in the other order",
    isSame: "messages",
    applies: isJson,
    of: ({ path, values }) => bytesOf({ path, values: values.map(reversed) }),
  },
  {
    name: "with 10 MB before anything else",
    isSame: true,
    applies: isJson,
    of: ({ path, values }, random) =>
      bytesOf({ path, values: values.map((one, at) => (at === 0 ? long(one, random) : one)) }),
  },
  {
    name: "with its last line twice",
    isSame: false,
    applies: isLines,
    of: ({ path, values }) => bytesOf({ path, values: [...values, values.at(-1)] }),
  },
  {
    name: "with a byte that is no text",
    isSame: false,
    applies: () => true,
    of: (sample, random) => {
      const bytes = Buffer.from(bytesOf(sample));
      // A damaged name of a field or a role may make the file that of no program.
      const said = [...bytes.toString("latin1").matchAll(/\b(?:Hi|ok|Done|Hm|Again)\b/g)].map(({ index }) => index);
      bytes[said[Math.floor(random() * said.length)] ?? 0] = 0xff;
      return bytes;
    },
  },
];

/** What a tool returned stays as it is: a model reads an object as its text, in the order of its fields. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value as Fields).toReversed();
  return Object.fromEntries(entries.map(([name, one]) => [name, name === "result" ? one : reversed(one)]));
}

/** A text of 10 MB as the first field of the value, or of the first element of a list. */
function long(value: unknown, random: () => number): unknown {
  const text = "x".repeat(10 * 2 ** 20 + Math.floor(random() * 1000));
  if (Array.isArray(value)) return [long(value[0], random), ...(value as readonly unknown[]).slice(1)];
  return { aLongText: text, ...(value as Fields) };
}
